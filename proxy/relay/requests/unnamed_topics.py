"""UnnamedTopics: Produce requests with topic ids whose names the proxy does not know yet.

Quotas by topic find limits by the topic's name, but Produce v13 has only ids (KIP-516). A request with
unknown ids waits while the shell requests their names from the cluster, and the relay reads no later request.
The wait ends when all names are known, when the cluster has responded to requests for each other id, or after
NAMES_SECONDS. Partitions of topics that are still unknown get UNKNOWN_TOPIC_ID, as from a broker that does
not have the topic.

Only a request by id tells a topic that the proxy may not describe from one that does not exist. If a
connection sends more unknown ids than its budget, the other ids wait for the names of all topics.
"""

from base64 import urlsafe_b64encode
from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.close_reasons import UNKNOWN_TOPIC, RelayError
from proxy.relay.requests.waiting_produce import WaitingProduce
from proxy.wire.cursor import NO_ID
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import RequestView

NAMES_SECONDS: Final = 2.0
"""The longest time for which a request waits for names. Brokers respond within milliseconds; the names of all
topics are requested once a second.
"""
FIRST_LOOK_SECONDS: Final = 0.005
"""The request looks for the names after this time, then after twice this time, and so on."""
LONGEST_LOOK_SECONDS: Final = 0.25
"""The longest time between two looks."""
SECONDS_PER_ID: Final = 0.0001
"""A request with many ids looks for names less often: each id costs about a microsecond, and a client may
invent 20,000.
"""

TopicIds = frozenset[bytes]
NO_TOPICS: Final[TopicIds] = frozenset()
NONE_ASKED: Final[dict[bytes, int]] = {}
"""Shared while nothing waits; never changed."""


@final
class UnnamedTopics:
    """The waits of one connection, on which one request waits at a time."""

    def __init__(self, engine: QuotaEngine, names: TopicNames, budget: IdBudget) -> None:
        self._engine: Final = engine
        self._names: Final = names
        self._budget: Final = budget
        self._topic_ids = NO_TOPICS
        self._asked_at = NONE_ASKED
        """By id: the number of requests for names that had been sent when the id was first wanted."""
        self._until = 0.0
        self._pause = 0.0
        self.produce: WaitingProduce | None = None
        """The request that waits, which no quota has charged; None if there is none."""
        self.wake_at = 0.0
        """When to look for the names next."""

    def find(self, view: RequestView, who: Identity) -> TopicIds:
        """Return the ids of a Produce request whose names are unknown, as far as it has been read, and set
        the names of the other items' topics. Return none if no limit is by topic, or if the proxy may not ask
        the cluster.
        """
        items = view.items
        if not items or items[0].topic:
            return NO_TOPICS
        if not self._names.asks or not self._engine.limits_topics(who):
            return NO_TOPICS
        self._names.fill_known(items)
        return self._unknown(frozenset([item.topic_id for item in items if not item.topic and item.size > 0]))

    def _unknown(self, topic_ids: TopicIds) -> TopicIds:
        names = self._names
        return frozenset(
            [
                topic_id
                for topic_id in topic_ids
                if topic_id != NO_ID and not names.known_name(topic_id) and not names.hides(topic_id)
            ]
        )

    def _ask(self, who: Identity, now: float) -> bool:
        """Have names requested. Return whether the cluster has responded about each id."""
        names = self._names
        self._budget.start(now)
        told = 0
        for topic_id in self._topic_ids:
            asked_at = self._asked_at.get(topic_id)
            if asked_at is not None and names.responses > asked_at:
                told += 1
                continue
            self._budget.name(topic_id, who)
            if asked_at is None and names.asked(topic_id):
                self._asked_at[topic_id] = names.requests
        return told == len(self._topic_ids)

    def wait(self, produce: WaitingProduce, topic_ids: TopicIds, now: float) -> None:
        """Begin to wait."""
        self.produce = produce
        self._topic_ids = topic_ids
        self._asked_at = {}
        self._ask(produce.exchange.client, now)
        self._until = now + NAMES_SECONDS
        self._pause = FIRST_LOOK_SECONDS
        self._look_again(now)

    def look(self, now: float) -> bool:
        """Return whether the wait is over, so that end() is due."""
        produce = self.produce
        self._topic_ids = self._unknown(self._topic_ids)
        if produce is None or self._ask(produce.exchange.client, now) or now >= self._until:
            return True
        self._pause = min(self._pause * 2.0, LONGEST_LOOK_SECONDS)
        self._look_again(now)
        return False

    def _look_again(self, now: float) -> None:
        pause = max(self._pause, len(self._topic_ids) * SECONDS_PER_ID)
        self.wake_at = min(now + pause, self._until)

    def end(self) -> TopicIds:
        """End the wait; return the ids that are still unknown."""
        unknown = self._topic_ids
        self._topic_ids = NO_TOPICS
        self._asked_at = NONE_ASKED
        self.produce = None
        self.wake_at = 0.0
        return unknown


def reject_part(size: int, topic_ids: TopicIds) -> None:
    """Raise RelayError if a request that is cut through, of `size` bytes, has unknown ids: the proxy cannot
    answer a part of it, and a broker does not respond to a request without its end.
    """
    if topic_ids:
        topic_id = urlsafe_b64encode(min(topic_ids)).rstrip(b"=").decode()
        raise RelayError(
            UNKNOWN_TOPIC,
            f"a Produce request of {size} bytes has the topic id {topic_id}, which the cluster lacks; the "
            f"proxy forwards requests of this size while they arrive, and cannot reject one partition alone",
        )
