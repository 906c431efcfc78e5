"""The axis of a chart: an outlier ends above it, so that the other columns can still be compared."""

from collections.abc import Sequence
from typing import Final

_FEWEST: Final = 4
"""Columns; of fewer, none can be called an outlier."""
_PART: Final = 30
"""One column in so many may be an outlier, and always one, or two of at least ten."""
_TIMES: Final = 4.0
"""An outlier is so many times as high as every column that is none."""
_ROOM: Final = 1.1


def axis_top(columns: Sequence[float]) -> float:
    """Return the highest value that the axis must show: that of the highest column, or slightly above the
    highest column that is not an outlier.
    """
    heights = sorted((value for value in columns if value > 0), reverse=True)
    if not heights:
        return 0.0
    most = 0 if len(heights) < _FEWEST else max(1, min(2, len(heights) // 5), len(heights) // _PART)
    for count in range(most, 0, -1):
        if heights[count - 1] > _TIMES * heights[count]:
            return heights[count] * _ROOM
    return heights[0]
