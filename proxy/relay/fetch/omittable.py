"""OmittablePartitions: the partitions that quotas may omit. The quotas are asked once per partition, until
limits change.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.relay.budgets.id_budget import IdBudget
from proxy.wire.fetch.request import TOPIC_IDS_FROM, FetchRequest, PartitionKey
from proxy.wire.reader import text
from proxy.wire.views import RequestView

RESULTS_AT_MOST: Final = 100_000
"""A client may invent partitions. Beyond this number, known results are dropped."""


@final
class OmittablePartitions:
    """The partitions of one connection."""

    def __init__(self, engine: QuotaEngine, names: IdBudget) -> None:
        self._engine: Final = engine
        self._names: Final = names
        self._known_topics: Final[dict[bytes, str]] = {}
        """For a consumer, by topic: a quota may omit either all partitions of the topic, or none."""
        self._known: Final[dict[PartitionKey, str]] = {}
        """By partition: the topic's name if a quota may omit the partition, else empty."""
        self._asked_for: tuple[int, int, Identity] | None = None
        """The limits, the follower and the client for which the names are valid."""

    def start(self, now: float) -> None:
        """Begin to read a fetch."""
        self._names.start(now)

    def awaits(self, key: PartitionKey) -> bool:
        """Whether the name of a topic that is known only by its id has been requested."""
        return self._names.awaits(key[0])

    def find(self, key: PartitionKey, version: int, replica_id: int, who: Identity) -> str | None:
        """The topic's name if a quota may omit the partition, else empty; None if the topic's name is not
        known yet.
        """
        asked_for = self._asked_for
        if (
            asked_for is None
            or asked_for[0] != self._engine.generation
            or asked_for[1] != replica_id
            or asked_for[2] is not who
            or len(self._known) + len(self._known_topics) >= RESULTS_AT_MOST
        ):
            self._known.clear()
            self._known_topics.clear()
            self._asked_for = (self._engine.generation, replica_id, who)
        found = self._known_topics.get(key[0]) if replica_id < 0 else self._known.get(key)
        if found is None:
            topic = self._names.name(key[0], who) if version >= TOPIC_IDS_FROM else text(key[0])
            if not topic:
                return None
            found = topic if self._engine.may_omit(topic, key[1], replica_id, who) else ""
            if replica_id < 0:
                self._known_topics[key[0]] = found
            else:
                self._known[key] = found
        return found

    def concern(self, request: FetchRequest, view: RequestView, who: Identity) -> bool:
        """Whether a quota limits any partition of a request, or may limit one, because the names of some
        topics are not known yet.
        """
        if not self._engine.omits:
            return False
        for entry in request.entries:
            if self.find((entry.topic, entry.partition), request.version, view.replica_id, who) != "":
                return True
        return False
