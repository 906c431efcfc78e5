"""SharedBucket: the demands of the processes for one limit, and the shares that result."""

import math
from typing import Final, final

from proxy.quota.sharing.in_force import InForce
from proxy.quota.sharing.members import Members
from proxy.quota.sharing.reports import BucketReport
from proxy.quota.sharing.waterfill import divide

CREDIT_SECONDS: Final = 0.2
"""The unused part of the limit that may be divided later, in seconds of the limit. In any 5 seconds, the
processes use at most 4 % more than the limit.
"""
SETTLE_SECONDS: Final = 1.5
"""The time in which credit is divided. Reports are about 0.4 s old when their effect holds: a shorter time
makes the shares oscillate.
"""
FORGET_SECONDS: Final = 30.0
"""The time in which credit decays to a third. Processes that began to read the log at different records agree
on the credit after a multiple of this.
"""


STEADY: Final = 0.05
"""Shares do not change while no new share differs by more than this part of it. A process may use only the
smallest of its latest parts (InForce), so small changes back and forth would waste a part of the limit.
"""


@final
class SharedBucket:
    """A bucket that some process has reported lately."""

    def __init__(self, limit: float, in_force: InForce, now: float) -> None:
        self.limit = limit
        self.reported_at = now
        """Of the last report by any process, on the log's clock."""
        self.in_force: Final = in_force
        self._credit = 0.0
        """The units that were not used; below zero, the units that were used beyond the limit."""
        self._reports: Final[dict[str, BucketReport]] = {}
        self._shares: list[float] = []
        """Of the live processes, in the order of their names."""
        self.excess = 1.0
        """The sum of the shares, as a part of the limit, if credit makes it more than the limit."""

    def see(self, instance: str, report: BucketReport, now: float) -> None:
        """Take a process's report. `now` is the log's time."""
        elapsed = now - self.reported_at
        last = self._reports.get(instance)
        used = report.used - last.used if last is not None else 0.0
        self._reports[instance] = report
        self.reported_at = now
        self.limit = report.limit
        credit = self._credit * math.exp(-elapsed / FORGET_SECONDS) + self.limit * elapsed - used
        bound = self.limit * CREDIT_SECONDS
        self._credit = min(max(credit, -bound), bound)

    def forget(self, instance: str) -> None:
        """A process is gone."""
        self._reports.pop(instance, None)

    def divide(self, members: Members, offset: int, instance: str, anew: bool) -> None:
        """Compute this process's part by the prefix of the log that ends with the record at `offset`.

        anew: the live processes have changed.
        """
        names = members.names()
        demands = []
        weights = []
        for name in names:
            report = self._reports.get(name)
            demands.append(0.0 if report is None else report.demand)
            weights.append(1.0 if report is None else float(max(report.waiting, 1)))
        shares = divide(self.limit + self._credit / SETTLE_SECONDS, demands, weights)
        if anew or not self._shares or _differ(shares, self._shares):
            self._shares = shares
            self.excess = max(sum(shares) / self.limit, 1.0)
            part = shares[names.index(instance)] / self.limit if instance in members else 0.0
            self.in_force.take(offset, part)


def _differ(shares: list[float], others: list[float]) -> bool:
    return any(abs(a - b) > STEADY * max(a, b) for a, b in zip(shares, others, strict=True))
