"""KnownWatermarks: the offsets that a broker has reported to any consumer."""

from typing import Final, final

WATERMARKS_AT_MOST: Final = 100_000
"""Partitions. If there are more, the oldest are dropped first."""

Offsets = tuple[int, int, int]
"""high_watermark, last_stable_offset, log_start_offset."""


@final
class KnownWatermarks:
    """Offsets by topic and partition. All connections to a broker share one object."""

    def __init__(self) -> None:
        self._known: Final[dict[tuple[str, int], Offsets]] = {}

    def tell(self, topic: str, partition: int, offsets: Offsets) -> None:
        """Store the offsets that the broker reports."""
        key = (topic, partition)
        if key not in self._known and len(self._known) >= WATERMARKS_AT_MOST:
            del self._known[next(iter(self._known))]
        self._known[key] = offsets

    def find(self, topic: str, partition: int) -> Offsets | None:
        """Return the offsets that the broker reported last; None if there are none."""
        return self._known.get((topic, partition))
