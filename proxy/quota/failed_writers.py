"""FailedWriters: the users whose records a broker did not append to a topic lately, such as those without the
right to write.

Quotas by topic charge records before the broker has them, and take the charge back if it does not append
them. Until then, the producers of the topic would wait for a use that does not happen: with Kafka's window, a
few large requests in flight let them wait for minutes. The records of such a user are therefore charged when
the broker has appended them. A request still waits for what is owed before.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.not_appended import not_appended
from proxy.wire.views import UNCHARGED, RequestView, ResponseView

REMEMBERED_SECONDS: Final = 3600.0
USERS_AT_MOST: Final = 10_000
"""Pairs of user and topic. Clients may make up topics: past this many, further ones are not remembered."""


@final
class FailedWriters:
    """The users of one broker's quotas."""

    def __init__(self) -> None:
        self._until: Final[dict[tuple[str, str], float]] = {}
        """By principal and topic: until when it is remembered."""

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return len(self._until) > 0

    def mark(self, request: RequestView, who: Identity, now: float) -> None:
        """Mark the items of a Produce request that are charged when the broker has appended them."""
        for item in request.items:
            if self._until.get((who.principal, item.topic), 0.0) > now:
                item.error_code = UNCHARGED
                request.uncharged = True

    def learn(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> None:
        """Note which records the broker has appended, and which not."""
        failed: set[str] = set()
        for item, _ in not_appended(request, response):
            if item.topic:
                failed.add(item.topic)
        for topic in failed:
            if len(self._until) < USERS_AT_MOST:
                self._until[who.principal, topic] = now + REMEMBERED_SECONDS
        if request.uncharged:
            for item in request.sent if request.sent else request.items:
                if item.error_code == UNCHARGED and item.topic not in failed:
                    self._until.pop((who.principal, item.topic), None)

    def forget(self, now: float) -> None:
        """Forget those of long ago."""
        gone = [key for key, until in self._until.items() if until <= now]
        for key in gone:
            del self._until[key]
