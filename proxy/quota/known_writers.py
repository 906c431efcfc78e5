"""KnownWriters: the users whose records a broker has appended to a topic lately.

Quotas by topic charge records before the broker has them. Until the broker has responded, nobody knows
whether it appends them: the user may have no right to write to the topic, and can delay the response as long
as it likes, for example with a Fetch in front that waits for minutes. The producers of the topic would wait
for a use that never happens. Therefore only the records of known writers are charged to the topic at once.
Those of other users are charged when the broker has appended them; until then, they are charged to a bucket
of the user's own (proxy.quota.kinds.topic_partition_bytes.advance_buckets).

Clients without a principal are known: they all have the same rights.
"""

from typing import Final, final

from proxy.quota.identity import ANONYMOUS, Identity
from proxy.quota.not_appended import not_appended
from proxy.wire.views import UNCHARGED, RequestView, ResponseView

REMEMBERED_SECONDS: Final = 3600.0
"""For so long after a broker has appended a user's records, the user may write to the topic. A right that is
revoked ends with the first batch that the broker does not append.
"""
PAIRS_AT_MOST: Final = 100_000
"""Pairs of user and topic. Further ones are not remembered, and so are charged when they are appended."""
_NO_TOPICS: Final[dict[str, float]] = {}


@final
class KnownWriters:
    """The users of one broker's quotas."""

    def __init__(self) -> None:
        self._topics_of: Final[dict[str, dict[str, float]]] = {}
        """By user and topic: until when it is remembered."""
        self._count = 0
        """The pairs."""

    def mark(self, request: RequestView, who: Identity) -> None:
        """Mark the items of a Produce request that are charged when the broker has appended them."""
        if who.principal == ANONYMOUS:
            return
        topics = self._topics_of.get(who.principal, _NO_TOPICS)
        known = ""
        for item in request.items:
            if item.topic is known:
                continue
            if not item.topic or item.topic in topics:  # no quota is by the id of a topic
                known = item.topic
            else:
                item.error_code = UNCHARGED
                request.uncharged = True

    def learn(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> None:
        """Note which records the broker has appended, and which not."""
        failed: set[str] = set()
        for item, _ in not_appended(request, response):
            failed.add(item.topic)
        for topic in failed:
            self._drop(who.principal, topic)
        if request.uncharged:
            for item in request.sent if request.sent else request.items:
                if item.error_code == UNCHARGED and item.topic not in failed:
                    self._add(who.principal, item.topic, now)

    def _add(self, user: str, topic: str, now: float) -> None:
        topics = self._topics_of.get(user)
        if topics is None or topic not in topics:
            if self._count >= PAIRS_AT_MOST:
                return
            self._count += 1
        if topics is None:
            self._topics_of[user] = {topic: now + REMEMBERED_SECONDS}
        else:
            topics[topic] = now + REMEMBERED_SECONDS

    def _drop(self, user: str, topic: str) -> None:
        topics = self._topics_of.get(user, _NO_TOPICS)
        if topic in topics:
            del topics[topic]
            self._count -= 1

    def forget(self, now: float) -> None:
        """Forget those of long ago; a user that still writes is known again after one request."""
        for user, topics in list(self._topics_of.items()):
            gone = [topic for topic, until in topics.items() if until <= now]
            for topic in gone:
                self._drop(user, topic)
            if not topics:
                del self._topics_of[user]
