"""The cost of a job: a fixed part, such as Spark's start, and a part per event."""

import json
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_OFF: Final = 0.15
"""The largest relative deviation from the line that counts as linear."""


@dataclass(frozen=True, slots=True)
class Result:
    """One job on so many events in a format. `seconds`: of the whole command. `cpu_seconds`: user and system
    time of its processes together; `megabytes`: their peak memory.
    """

    tool: str
    job: str
    form: str
    events: int
    seconds: float
    cpu_seconds: float
    megabytes: float

    @property
    def rate(self) -> float:
        """Events per second, including the fixed part."""
        return self.events / self.seconds


@dataclass(frozen=True, slots=True)
class Line:
    """seconds = fixed_seconds + seconds_per_event x events. `off`: the largest relative deviation."""

    fixed_seconds: float
    seconds_per_event: float
    off: float

    @property
    def is_linear(self) -> bool:
        """Whether every size is close to the line."""
        return self.off <= MOST_OFF

    def seconds(self, events: int) -> float:
        """Return the seconds for this number of events."""
        return self.fixed_seconds + self.seconds_per_event * events


def fit(results: Sequence[Result]) -> Line | None:
    """Fit a line by relative least squares, so that the largest size does not dominate.

    None with fewer than two sizes. Two sizes always fit a line.
    """
    if len({each.events for each in results}) < 2:
        return None
    weights = [1 / each.seconds**2 for each in results]
    total = sum(weights)
    mean_events = sum(w * each.events for w, each in zip(weights, results, strict=True)) / total
    mean_seconds = sum(w * each.seconds for w, each in zip(weights, results, strict=True)) / total
    spread = sum(w * (each.events - mean_events) ** 2 for w, each in zip(weights, results, strict=True))
    both = sum(
        w * (each.events - mean_events) * (each.seconds - mean_seconds)
        for w, each in zip(weights, results, strict=True)
    )
    slope = both / spread
    line = Line(mean_seconds - slope * mean_events, slope, 0.0)
    off = max(abs(each.seconds / line.seconds(each.events) - 1) for each in results)
    return Line(line.fixed_seconds, slope, off)


def own_cost() -> str:
    """Return the cost of this process so far as a line of JSON."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return json.dumps({"cpu_seconds": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / 1024})
