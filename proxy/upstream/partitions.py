"""How many partitions a topic has, from sources that may be behind the controller.

A broker's Metadata is behind the controller for a moment, so the proxy remembers the mutations that it has
forwarded. If the two differ and have the same topic id, the larger count is the newer: a topic never loses
partitions. Without ids to compare, the count that charges more is used.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from proxy.wire.cursor import NO_ID

REMEMBERED_SECONDS: Final = 300.0
"""Longer than a broker that serves clients is behind the controller."""
REMEMBERED_AT_MOST: Final = 20_000
"""Topics; each takes some hundred bytes. Twice as many as a controller creates in one request (KRaft)."""


TopicKey = str | bytes
"""What a request names a topic by: its name, or its id if the request has no name."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """A topic's partitions according to one source."""

    count: int
    topic_id: bytes = NO_ID


def to_delete(known: Iterable[Partitions | None]) -> int:
    """Return the partitions of a topic that is deleted; 0 if no source has it."""
    return max([source.count for source in known if source is not None], default=0)


def to_grow(known: Iterable[Partitions | None]) -> int | None:
    """Return the partitions of a topic that is grown; None if no source has it."""
    sources = [source for source in known if source is not None]
    if not sources:
        return None
    counts = [source.count for source in sources]
    ids = {source.topic_id for source in sources}
    return max(counts) if len(ids) == 1 and NO_ID not in ids else min(counts)


class RecentMutations:
    """The topics that were recently created, extended or deleted through the proxy."""

    def __init__(self, seconds: float = REMEMBERED_SECONDS, at_most: int = REMEMBERED_AT_MOST) -> None:
        self._seconds: Final = seconds
        self._at_most: Final = at_most
        self._topics: Final[dict[str, tuple[Partitions, float]]] = {}
        """By name: the partitions, and the time of the mutation; the oldest first."""
        self._names: Final[dict[bytes, str]] = {}
        """The names of these topics by topic id."""

    def note(self, name: str, partitions: Partitions, now: float) -> None:
        """Remember that a topic was created or grown."""
        self.forget(name)
        self._topics[name] = (partitions, now)
        if partitions.topic_id != NO_ID:
            self._names[partitions.topic_id] = name
        while len(self._topics) > self._at_most or self._oldest() <= now - self._seconds:
            self.forget(next(iter(self._topics)))

    def _oldest(self) -> float:
        return next(iter(self._topics.values()))[1]

    def forget(self, name: str) -> None:
        """Remember nothing of a topic that was deleted."""
        known = self._topics.pop(name, None)
        if known is not None:
            self._names.pop(known[0].topic_id, None)

    def recall(self, name: str, now: float, within: float = REMEMBERED_SECONDS) -> Partitions | None:
        """Return a topic's partitions; None if it was not changed in the last `within` seconds."""
        known = self._topics.get(name)
        return None if known is None or known[1] <= now - min(within, self._seconds) else known[0]

    def name(self, topic_id: bytes) -> str | None:
        """Return the name of a topic that was recently created or extended."""
        return self._names.get(topic_id)
