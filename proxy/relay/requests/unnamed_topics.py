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


def unnamed_topics(engine: QuotaEngine, names: TopicNames, view: RequestView, who: Identity) -> TopicIds:
    """Return the ids of a Produce request whose names are unknown, as far as it has been read, and set the
    names of the other items' topics. Return none if no limit is by topic, or if the proxy may not ask the
    cluster.
    """
    items = view.items
    if not items or items[0].topic:
        return NO_TOPICS
    if not names.asks or not engine.limits_topics(who):
        return NO_TOPICS
    names.fill_known(items)
    return _unknown(names, frozenset([item.topic_id for item in items if not item.topic and item.size > 0]))


def _unknown(names: TopicNames, topic_ids: TopicIds) -> TopicIds:
    return frozenset(
        [
            topic_id
            for topic_id in topic_ids
            if topic_id != NO_ID and not names.known_name(topic_id) and not names.hides(topic_id)
        ]
    )


@final
class UnnamedTopics:
    """The wait of one request, which no quota has charged."""

    def __init__(
        self, names: TopicNames, budget: IdBudget, produce: WaitingProduce, topic_ids: TopicIds, now: float
    ) -> None:
        self._names: Final = names
        self._budget: Final = budget
        self.produce: Final = produce
        self.topic_ids = topic_ids
        """The ids that are still unknown."""
        self._asked_at: Final[dict[bytes, int]] = {}
        """By id: the number of requests for names that had been sent when the id was first wanted."""
        self._until: Final = now + NAMES_SECONDS
        self._pause = FIRST_LOOK_SECONDS
        self.wake_at = 0.0
        """When to look for the names next."""
        self._ask(now)
        self._look_again(now)

    def _ask(self, now: float) -> bool:
        """Have names requested. Return whether the cluster has responded about each id."""
        names = self._names
        who = self.produce.exchange.client
        self._budget.start(now)
        told = 0
        for topic_id in self.topic_ids:
            asked_at = self._asked_at.get(topic_id)
            if asked_at is not None and names.responses > asked_at:
                told += 1
                continue
            self._budget.name(topic_id, who)
            if asked_at is None and names.asked(topic_id):
                self._asked_at[topic_id] = names.requests
        return told == len(self.topic_ids)

    def look(self, now: float) -> bool:
        """Return whether the wait is over."""
        self.topic_ids = _unknown(self._names, self.topic_ids)
        if self._ask(now) or now >= self._until:
            return True
        self._pause = min(self._pause * 2.0, LONGEST_LOOK_SECONDS)
        self._look_again(now)
        return False

    def _look_again(self, now: float) -> None:
        pause = max(self._pause, len(self.topic_ids) * SECONDS_PER_ID)
        self.wake_at = min(now + pause, self._until)


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
