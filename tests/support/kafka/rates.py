"""How even a flow of bytes is, second by second."""

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise


def per_second(pieces: Iterable[tuple[float, int]], start: float, seconds: int) -> list[int]:
    """Return the bytes of each of `seconds` seconds from `start`; a piece is (time in seconds, bytes)."""
    sums = [0] * seconds
    for at, size in pieces:
        second = int(at - start)
        if at >= start and second < seconds:
            sums[second] += size
    return sums


def uneven(pauses: float, seconds: int) -> float:
    """By how much pauses of the machine can raise the coefficient of variation of so many seconds.

    One second lacks what a pause took, and another one has it in addition.
    """
    return pauses * math.sqrt(2 / seconds)


def check_even(rates: Sequence[int], quota: float, pauses: Sequence[float]) -> None:
    """Check that the mean is within 3 % of the quota, the coefficient of variation below 0.15, and no second
    over 1.3 quotas.

    pauses  for how long the machine paused in the second before, and in each second; the bounds allow for it
    """
    mean = statistics.fmean(rates)
    variation = statistics.pstdev(rates) / mean
    shown = (
        f"mean {mean / quota:.3f}, variation {variation:.3f}, most {max(rates) / quota:.2f} "
        f"of {list(rates)}; pauses: {list(pauses)}"
    )
    assert abs(mean / quota - 1) < 0.03 + sum(pauses) / len(rates), shown
    assert variation < 0.15 + uneven(sum(pauses), len(rates)), shown
    most = ((1.3 + sum(pair)) * quota for pair in pairwise(pauses))
    assert all(rate < bound for rate, bound in zip(rates, most, strict=True)), shown


def check_fives(rates: Sequence[int], quota: float, pauses: Sequence[float]) -> None:
    """Check that no five seconds are more than 5 % over the quota.

    pauses  for how long the machine paused in the second before, and in each second; the bounds allow for it
    """
    for start in range(len(rates) - 4):
        bound = (1.05 * 5 + sum(pauses[start : start + 6])) * quota
        assert sum(rates[start : start + 5]) <= bound, f"{list(rates)} from {start}; pauses: {list(pauses)}"
