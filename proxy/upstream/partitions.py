"""How many partitions a topic has, of which every source may be behind.

A broker's Metadata trails the controller by a moment, so what has just passed through the proxy is
remembered. Where the two differ, the topic's id says whether they speak of the same topic: its partitions
never become fewer, so the larger count is the newer. Where the ids do not say, what charges more counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from proxy.wire.views import NO_ID

REMEMBERED_SECONDS: Final = 300.0
"""Longer than any broker that serves clients is behind."""
REMEMBERED_AT_MOST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Partitions:
    """A topic's partitions, as one source has them."""

    count: int
    topic_id: bytes = NO_ID


def to_delete(known: Iterable[Partitions | None]) -> int:
    """Partitions of a topic that is to go; 0 where nobody knows it."""
    return max([source.count for source in known if source is not None], default=0)


def to_grow(known: Iterable[Partitions | None]) -> int | None:
    """Partitions of a topic that is to have more; None where nobody knows it."""
    sources = [source for source in known if source is not None]
    if not sources:
        return None
    counts = [source.count for source in sources]
    ids = {source.topic_id for source in sources}
    return max(counts) if len(ids) == 1 and NO_ID not in ids else min(counts)


class Remembered:
    """What has passed through the proxy lately, by topic."""

    def __init__(self, seconds: float = REMEMBERED_SECONDS, at_most: int = REMEMBERED_AT_MOST) -> None:
        self._seconds: Final = seconds
        self._at_most: Final = at_most
        self._topics: Final[dict[str, tuple[Partitions, float]]] = {}
        """With the time of each, the oldest first."""
        self._names: Final[dict[bytes, str]] = {}
        """By topic id."""

    def note(self, name: str, partitions: Partitions, now: float) -> None:
        """A topic has so many partitions from now on."""
        self.forget(name)
        self._topics[name] = (partitions, now)
        if partitions.topic_id != NO_ID:
            self._names[partitions.topic_id] = name
        while len(self._topics) > self._at_most or self._oldest() <= now - self._seconds:
            self.forget(next(iter(self._topics)))

    def _oldest(self) -> float:
        return next(iter(self._topics.values()))[1]

    def forget(self, name: str) -> None:
        """A topic is gone."""
        known = self._topics.pop(name, None)
        if known is not None:
            self._names.pop(known[0].topic_id, None)

    def recall(self, name: str, now: float) -> Partitions | None:
        known = self._topics.get(name)
        return None if known is None or known[1] <= now - self._seconds else known[0]

    def name(self, topic_id: bytes) -> str | None:
        """The name of a topic of which the id was heard."""
        return self._names.get(topic_id)
