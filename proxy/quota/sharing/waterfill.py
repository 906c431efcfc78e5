"""Max-min fair division of a rate among processes."""

from typing import Final, final

RESERVE: Final = 0.01
"""The part of the rate that is kept for processes without demand, so that a new client of theirs does not
wait for the next report. It is lost to the others, so it is less than what a limit may fall short by.
"""


@final
class Demand:
    """What one process wants of a limit, and what it gets.

    name: the process; among equal demands, names decide the order, so that all processes compute the same.
    demand: per second; math.inf if the process can use any share.
    weight: above 0. The processes whose demands are not met get shares in this proportion.
    share: per second, as divide() computed it last.
    """

    __slots__ = ("_ratio", "_wanted", "demand", "name", "share", "weight")

    def __init__(self, name: str, demand: float, weight: float) -> None:
        self.name: Final = name
        self.demand = demand
        self.weight = weight
        self.share = 0.0
        self._wanted = 0.0
        self._ratio = 0.0

    def want(self, least: float) -> None:
        """Begin a division, in which it wants its demand, but at least `least`."""
        self._wanted = max(self.demand, least)
        self._ratio = self._wanted / self.weight

    def after(self, other: "Demand") -> bool:
        """Whether the other one's demand is met first."""
        if self._ratio == other._ratio:
            return self.name > other.name
        return self._ratio > other._ratio

    def take(self, part: float) -> None:
        """Take what it wants, at most `part`."""
        self.share = min(self._wanted, part)


def divide(rate: float, demands: list[Demand], silent: int) -> float:
    """Divide `rate` by demand; set the shares. No process gets more than its demand while another one's
    demand is not met.

    `silent` is the number of further processes, which have no demand. Return the share of each of them.

    If the sum of the demands is below the rate, all get equal parts of the rest, so that a new client does
    not wait for the next report. All shares add up to `rate`. The time is proportional to the number of
    demands, not of processes, if their order is that of the last division: `demands` is sorted in place.
    """
    count = len(demands) + silent
    if count == 0:
        return 0.0
    least = rate * RESERVE / count
    weight_left = float(silent)
    for demand in demands:
        demand.want(least)
        weight_left += demand.weight
    _sort(demands)
    share_of_silent = min(least, rate / weight_left)
    left = rate - share_of_silent * silent
    weight_left -= silent
    for demand in demands:
        part = left * demand.weight / weight_left if weight_left > 0.0 else left
        demand.take(part)
        left = max(left - demand.share, 0.0)
        weight_left -= demand.weight
    equal = left / count
    for demand in demands:
        demand.share += equal
    return share_of_silent + equal


def _sort(demands: list[Demand]) -> None:
    """Sort what is sorted already, but for a few."""
    for place in range(1, len(demands)):
        demand = demands[place]
        before = place - 1
        while before >= 0 and demands[before].after(demand):
            demands[before + 1] = demands[before]
            before -= 1
        demands[before + 1] = demand
