"""KnownWatermarks: what a broker has told any consumer of its partitions' logs."""

from typing import Final, final

KNOWN_AT_MOST: Final = 100_000
"""Partitions; past this many, the oldest go first."""

Offsets = tuple[int, int, int]
"""high_watermark, last_stable_offset, log_start_offset."""


@final
class KnownWatermarks:
    """The connections to a broker share one. Only partitions of which the broker has told get in."""

    def __init__(self) -> None:
        self._known: Final[dict[tuple[str, int], Offsets]] = {}

    def tell(self, topic: str, partition: int, offsets: Offsets) -> None:
        """Note what the broker says."""
        key = (topic, partition)
        if key not in self._known and len(self._known) >= KNOWN_AT_MOST:
            del self._known[next(iter(self._known))]
        self._known[key] = offsets

    def find(self, topic: str, partition: int) -> Offsets | None:
        """What the broker has said last; None if nothing."""
        return self._known.get((topic, partition))
