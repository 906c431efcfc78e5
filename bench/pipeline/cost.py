"""What a job costs: a fixed part, such as Spark's warming up, and so much for each further event."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

MOST_GROWTH: Final = 1.15
"""By what the cost of a further event may grow with the size, where cost is to be linear."""


@dataclass(frozen=True, slots=True)
class Result:
    """One job on so many events. `megabytes`: the most memory that its processes had, together."""

    tool: str
    job: str
    events: int
    seconds: float
    megabytes: float

    @property
    def rate(self) -> float:
        """Events per second, all in all."""
        return self.events / self.seconds


@dataclass(frozen=True, slots=True)
class Cost:
    """`steps`: seconds for each further event, from one size to the next."""

    fixed_seconds: float
    steps: tuple[float, ...]

    @property
    def growth(self) -> float:
        """The dearest step by the one before it; 0.0 where there is none."""
        return max((after / before for before, after in pairwise(self.steps)), default=0.0)

    @property
    def is_linear(self) -> bool:
        """Whether a further event costs no more where there are many: Spark gets cheaper as it warms up."""
        return self.growth <= MOST_GROWTH


def cost(results: Sequence[Result]) -> Cost | None:
    """Out of one job's results; None where fewer than two sizes were measured."""
    by_size = sorted(results, key=lambda each: each.events)
    steps = tuple(
        (after.seconds - before.seconds) / (after.events - before.events)
        for before, after in pairwise(by_size)
    )
    return Cost(by_size[0].seconds - steps[0] * by_size[0].events, steps) if steps else None
