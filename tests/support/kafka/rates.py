"""How even a flow of bytes is, second by second."""

import statistics
from collections.abc import Iterable, Sequence


def per_second(pieces: Iterable[tuple[float, int]], start: float, seconds: int) -> list[int]:
    """Return the bytes of each of `seconds` seconds from `start`; a piece is (time in seconds, bytes)."""
    sums = [0] * seconds
    for at, size in pieces:
        second = int(at - start)
        if at >= start and second < seconds:
            sums[second] += size
    return sums


def check_even(rates: Sequence[int], quota: float) -> None:
    """Check that the mean is within 3 % of the quota, the coefficient of variation below 0.15, and no second
    over 1.3 quotas.
    """
    mean = statistics.fmean(rates)
    variation = statistics.pstdev(rates) / mean
    shown = (
        f"mean {mean / quota:.3f}, variation {variation:.3f}, most {max(rates) / quota:.2f} of {list(rates)}"
    )
    assert abs(mean / quota - 1) < 0.03, shown
    assert variation < 0.15, shown
    assert max(rates) < 1.3 * quota, shown
