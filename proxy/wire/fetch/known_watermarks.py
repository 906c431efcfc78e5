"""KnownWatermarks: the offsets that a broker has reported to the consumers of each principal.

Offsets tell how much others write to a topic, so only a principal that could read it gets them.
"""

from typing import Final, final

WATERMARKS_AT_MOST: Final = 100_000
"""Partitions. If there are more, the oldest are dropped first."""

Offsets = tuple[int, int, int]
"""high_watermark, last_stable_offset, log_start_offset."""


@final
class KnownWatermarks:
    """Offsets by principal, topic and partition. All connections to a broker share one object."""

    def __init__(self) -> None:
        self._known: Final[dict[tuple[str, str, int], Offsets]] = {}

    def tell(self, user: str, topic: str, partition: int, offsets: Offsets) -> None:
        """Store the offsets that the broker reports to a consumer of this principal."""
        key = (user, topic, partition)
        if key not in self._known and len(self._known) >= WATERMARKS_AT_MOST:
            del self._known[next(iter(self._known))]
        self._known[key] = offsets

    def find(self, user: str, topic: str, partition: int) -> Offsets | None:
        """Return the offsets that the broker reported last to the principal; None if there are none."""
        return self._known.get((user, topic, partition))
