"""The axis: what an outlier is."""

import pytest

from pipeline.report.axis import axis_top


@pytest.mark.parametrize(
    ("columns", "top"),
    [
        ([], 0.0),
        ([0.0, 0.0], 0.0),
        ([1.0, 100.0, 1.0], 100.0),
        ([1.0, 100.0, 1.0, 1.0], 1.1),
        ([1.0, 3.9, 1.0, 1.0], 3.9),
        ([*[1.0] * 8, 100.0, 90.0], 1.1),
        ([*[1.0] * 8, 1000.0, 100.0], 1.1),
        ([*[1.0] * 7, 100.0, 100.0, 100.0], 100.0),
        ([0.0] * 100 + [5.0], 5.0),
        ([*[1.0] * 354, *[50.0] * 12], 1.1),
        ([*[1.0] * 353, *[50.0] * 13], 50.0),
    ],
)
def test_what_the_axis_shows(columns: list[float], top: float) -> None:
    """A few columns that are much higher than all others are cut; half of the columns, or batches of every
    day, are not.
    """
    assert axis_top(columns) == pytest.approx(top)
