"""Max-min fair division of a rate among processes."""

from typing import Final

RESERVE: Final = 0.01
"""The part of the rate that is kept for processes without demand, so that a new client of theirs does not
wait for the next report. It is lost to the others, so it is less than what a limit may fall short by.
"""


def divide(rate: float, demands: list[float], weights: list[float]) -> list[float]:
    """Divide `rate` by demand. No process gets more than its demand while another one's demand is not met.

    demands: per second, one for each process; math.inf for one that can use any share.
    weights: above 0. The processes whose demands are not met get shares in this proportion.

    If the sum of the demands is below the rate, all get equal parts of the rest, so that a new client does
    not wait for the next report. The results add up to `rate`.
    """
    count = len(demands)
    if count == 0:
        return []
    least = rate * RESERVE / count
    wanted = [max(demand, least) for demand in demands]
    order = sorted(range(count), key=lambda index: (wanted[index] / weights[index], index))
    shares = [0.0] * count
    left = rate
    weight_left = sum(weights)
    for index in order:
        part = left * weights[index] / weight_left if weight_left > 0.0 else left
        share = min(wanted[index], part)
        shares[index] = share
        left = max(left - share, 0.0)
        weight_left -= weights[index]
    equal = left / count
    return [share + equal for share in shares]
