"""ConsumerFetchSession: a consumer's partitions and those that quotas omit.

The watermarks that a broker reports to one consumer are valid for all of the same principal
(KnownWatermarks). If none are known of an omitted partition, a full fetch waits: a request for the partition
would return a batch of it, whatever its partition_max_bytes.
"""

from typing import cast, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.consumer_plan import ConsumerItem, ConsumerPlan
from proxy.quota.fetch.plan import FetchItem
from proxy.quota.identity import Identity
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.relay.fetch.partition import SessionPartition
from proxy.relay.fetch.session import FetchSession
from proxy.wire.fetch.request import FetchRequest, PartitionKey
from proxy.wire.fetch.rewrite import FetchRewrite, Watermarks


@final
class ConsumerFetchSession(FetchSession):
    """The session of a consumer. Each plan is about all candidates."""

    def __init__(
        self, engine: QuotaEngine, topics: OmittablePartitions, who: Identity, version: int, replica_id: int
    ) -> None:
        super().__init__(engine, topics, who, version, replica_id)
        self.unknown = 0
        """The number of omitted partitions without known watermarks in the last full request."""
        self._turn = 0
        """The index of the candidate with which the next plan begins."""

    def taken(self, request: FetchRequest, known: FetchSession | None) -> None:
        """Take the rest of a request, and the places in queues that `known` has for its partitions."""
        super().taken(request, known)
        if isinstance(known, ConsumerFetchSession):
            for key, partition in self._candidates.items():
                earlier = known._candidates.get(key)
                if earlier is not None:
                    _item(partition).take_tickets(_item(earlier))

    def end(self) -> None:
        """Give up the places of its partitions in queues."""
        for partition in self._candidates.values():
            _item(partition).end()

    def _new_item(self, topic: str, key: PartitionKey, marks: Watermarks) -> FetchItem:
        marks.known = self._engine.known_watermarks
        marks.user = self._who.principal
        marks.topic = topic
        marks.partition = key[1]
        return ConsumerItem(topic, key[1], marks, key)

    def _drop(self, key: PartitionKey, partition: SessionPartition) -> None:
        _item(partition).end()
        super()._drop(key, partition)
        partition.marks = None
        self._unwatch(key)

    def awaits_names(self) -> bool:
        """Whether topic names that a quota needs have been requested."""
        return any(self._topics.awaits(key) for key in self._unnamed)

    @property
    def planned(self) -> int:
        """The number of partitions in a plan."""
        return len(self._candidates)

    def plan(self, now: float, answer_at: float) -> ConsumerPlan:
        """Ask the quotas which partitions to omit from a fetch, which has its response by `answer_at`."""
        self._reclassify()
        items = [_item(partition) for partition in self._candidates.values()]
        turn = self._turn % len(items) if items else 0
        plan = ConsumerPlan(items[turn:] + items[:turn], answer_at)
        if items:
            self._engine.plan_consumer_fetch(plan, self._who, now)
        if plan.omitted:
            self._turn = turn + plan.served()
        return plan

    def _decided(self) -> list[SessionPartition]:
        return list(self._candidates.values())

    def full(self, rewrite: FetchRewrite) -> bytes | None:
        """Return the topics of a full request. None if there is nothing to request, or if the watermarks of
        an omitted partition are unknown.
        """
        self.unknown = 0
        topics = super().full(rewrite)
        return None if self.unknown > 0 else topics

    def _requests_unknown(self, partition: SessionPartition) -> bool:
        self.unknown += 1
        return False


def _item(candidate: SessionPartition) -> ConsumerItem:
    return cast("ConsumerItem", candidate.item)
