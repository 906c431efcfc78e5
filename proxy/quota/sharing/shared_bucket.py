"""SharedBucket: the demands of the processes for one limit, and the shares that result."""

import math
from typing import Final, final

from proxy.quota.limits.enforcement import KAFKA_WINDOW
from proxy.quota.measure.rates import SampledRate
from proxy.quota.sharing.in_force import InForce
from proxy.quota.sharing.members import Members
from proxy.quota.sharing.reports import SATURATED, BucketReport
from proxy.quota.sharing.waterfill import Demand, divide

CREDIT_SECONDS: Final = 0.1
"""The unused part of the limit that may be divided later, in seconds of the limit. In any 5 seconds, the
processes use at most 2 % more than the limit because of it. With half of it, the mean can fall short by 4 %.
"""
SETTLE_SECONDS: Final = 1.5
"""The time in which credit is divided. Reports are about 0.4 s old when their effect holds: a shorter time
makes the shares oscillate.
"""
FORGET_SECONDS: Final = 30.0
"""The time in which credit decays to a third. Processes that began to read the log at different records agree
on the credit after a multiple of this.
"""
BURST_SECONDS: Final = 1.0
"""The usual burst of a rule whose waits are bounded. The largest debt that it remembers is Kafka's window."""

STEADY: Final = 0.05
"""Shares do not change while no new share differs by more than this part of it. A process may use only the
smallest of its latest parts (InForce), so small changes back and forth would waste a part of the limit.
"""


@final
class _Process:
    """One process that has reported the bucket."""

    __slots__ = ("charged", "demand", "in_use", "rate", "reported_at", "used")

    def __init__(self, demand: Demand, used: float, in_use: float, now: float) -> None:
        self.demand: Final = demand
        self.used = used
        """BucketReport.used in its last report."""
        self.charged = used
        """The same and BucketReport.debt in it."""
        self.reported_at = now
        self.rate = 0.0
        """Its use per second between its last two reports."""
        self.in_use = in_use
        """Its share by the last division that changed the shares."""


@final
class SharedBucket:
    """A bucket that some process has reported lately."""

    def __init__(self, limit: float, in_force: InForce, now: float, rate: SampledRate | None = None) -> None:
        """`rate`: its rate when it was hot before; None if that is longer ago than Kafka's window."""
        self.rate: Final = SampledRate(KAFKA_WINDOW.samples, KAFKA_WINDOW.seconds) if rate is None else rate
        """What all processes together have used, by their reports: Kafka's rate, on the log's clock."""
        self.limit = limit
        """The whole limit, per second, by the last report."""
        self.reported_at = now
        """The time of the last report by any process, on the log's clock."""
        self.in_force: Final = in_force
        self._credit = 0.0
        """The units that were not reported as used; below zero, the units that were used beyond the limit."""
        self._owed = 0.0
        """The units that were charged and not paid at the limit since, by the reports. A token bucket of all
        processes has that much less than all its tokens.
        """
        self._rates = 0.0
        """The sum of _Process.rate."""
        self._reported = 0.0
        """The sum of rate x reported_at."""
        self._processes: Final[dict[str, _Process]] = {}
        """Those that have reported the bucket; the others have no demand."""
        self._demands: Final[list[Demand]] = []
        self._divided = False
        self._silent_share = 0.0
        """The share of each process that has not reported the bucket."""
        self._total = limit
        """The sum of the shares: the limit, and the credit that is divided."""

    def see(self, instance: str, report: BucketReport, now: float) -> bool:
        """Take a process's report; return whether it has stopped using the bucket.

        `now` is the log's time.
        """
        elapsed = now - self.reported_at
        process = self._processes.get(instance)
        used = 0.0
        stopped = False
        weight = float(max(report.waiting, 1))
        if process is None:
            demand = Demand(instance, report.demand, weight)
            process = self._processes[instance] = _Process(demand, report.used, self._silent_share, now)
            self._demands.append(demand)
        else:
            used = report.used - process.used
            stopped = report.demand == 0.0 and process.demand.demand > 0.0
            process.used = report.used
            process.demand.demand = report.demand
            process.demand.weight = weight
            self._note_rate(process, used, now)
        self._owe(process, report, elapsed)
        self.reported_at = now
        self.limit = report.limit
        if used > 0.0:
            self.rate.record(used, now)
        self._credit *= math.exp(-elapsed / FORGET_SECONDS)
        self._credit += self.limit * elapsed - used
        self._bound()
        return stopped

    @property
    def short(self) -> bool:
        """Whether requests waited for it at some process, as of the last division."""
        # The one with the largest demand is the last.
        return len(self._demands) > 0 and self._demands[-1].demand == SATURATED

    def _owe(self, process: _Process, report: BucketReport, elapsed: float) -> None:
        """Take what a process has charged. `self.limit` is still that of the last report."""
        owed = max(self._owed - self.limit * elapsed, 0.0)
        if owed > 0.0 and report.limit != self.limit:
            # The burst follows the limit. What exceeds the burst, and what is left of it, does not.
            owed = max(owed + BURST_SECONDS * (report.limit - self.limit), 0.0)
        charged = report.used + report.debt
        owed += max(charged - process.charged, 0.0)
        process.charged = charged
        self._owed = min(owed, report.limit * (KAFKA_WINDOW.total_seconds + BURST_SECONDS))

    def owed_seconds(self, burst_seconds: float, now: float) -> float:
        """How long clients of one process would have to wait that serves all: until the debt of its token
        bucket is paid.
        """
        return max(self._owed / self.limit - (now - self.reported_at) - burst_seconds, 0.0)

    def _bound(self) -> None:
        """Forget credit beyond CREDIT_SECONDS of the limit."""
        bound, unreported = self.limit * CREDIT_SECONDS, self._unreported
        self._credit = min(max(self._credit, unreported - bound), unreported + bound)

    def _note_rate(self, process: _Process, used: float, now: float) -> None:
        """Take the rate of a process since its last report; 0.0 if it has stopped."""
        elapsed = now - process.reported_at
        self._rates -= process.rate
        self._reported -= process.rate * process.reported_at
        if elapsed > 0.0:
            process.rate = max(used, 0.0) / elapsed
        if process.demand.demand == 0.0:
            process.rate = 0.0
        process.reported_at = now
        self._rates += process.rate
        self._reported += process.rate * now

    @property
    def _unreported(self) -> float:
        """What the processes have probably used since their last reports."""
        return self._rates * self.reported_at - self._reported

    def forget(self, instance: str) -> None:
        """Remove a process that is gone. What it has not used since its last report counts as unused."""
        process = self._processes.pop(instance, None)
        if process is not None:
            self._demands.remove(process.demand)
            self._rates -= process.rate
            self._reported -= process.rate * process.reported_at
            self._bound()

    def divide(self, members: Members, offset: int, instance: str, anew: bool) -> None:
        """Compute this process's part by the prefix of the log that ends with the record at `offset`.

        anew: the live processes have changed.
        """
        if anew:
            for name in [name for name in self._processes if name not in members]:
                self.forget(name)
        silent = len(members) - len(self._demands)
        credit = self._credit - self._unreported
        silent_share = divide(self.limit + credit / SETTLE_SECONDS, self._demands, silent)
        if anew or not self._divided or self._differ(silent, silent_share):
            self._use(silent, silent_share)
            if instance not in members:
                self.in_force.take(offset, 0.0, 0.0)
                return
            share = self._share_of(instance)
            self.in_force.take(offset, share / self.limit, share / self._total)

    def shares(self, members: Members) -> dict[str, float]:
        """Return the share of each live process by the last division, per second: what it may use once all
        processes have read the report.
        """
        shares: dict[str, float] = {}
        for name in members.names():
            shares[name] = self._share_of(name)
        return shares

    def _differ(self, silent: int, silent_share: float) -> bool:
        """Whether a new share differs from the one in use."""
        if silent > 0 and _far_from(silent_share, self._silent_share):
            return True
        for process in self._processes.values():  # noqa: SIM110 - a generator takes several times as long
            if _far_from(process.demand.share, process.in_use):
                return True
        return False

    def _use(self, silent: int, silent_share: float) -> None:
        self._divided = True
        self._silent_share = silent_share
        total = silent * silent_share
        for process in self._processes.values():
            process.in_use = process.demand.share
            total += process.in_use
        self._total = total

    def _share_of(self, instance: str) -> float:
        process = self._processes.get(instance)
        return self._silent_share if process is None else process.in_use


def _far_from(share: float, other: float) -> bool:
    return abs(share - other) > STEADY * max(share, other)
