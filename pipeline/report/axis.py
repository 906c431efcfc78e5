"""The axis of a chart: an outlier ends above it, so that the other columns can still be compared."""

from collections.abc import Sequence
from typing import Final

_FEWEST: Final = 4
"""The minimum number of columns. With fewer columns, none is an outlier."""
_PART: Final = 30
"""At most one column in this many is an outlier; but one column always may be, and two if there are at least
ten.
"""
_TIMES: Final = 4.0
"""An outlier is at least this many times as high as every other column that is not an outlier."""
_ROOM: Final = 1.1
"""How many times the highest column that is not an outlier the axis is high, if it cuts off outliers."""


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
