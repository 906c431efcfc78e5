"""Processes that share limits, without connections and buckets: what each reports, and what it reads."""

from dataclasses import dataclass, field

from proxy.quota.sharing.reported_uses import LocalUse
from proxy.quota.sharing.reports import Report
from proxy.quota.sharing.sharing import REPORT_SECONDS, Sharing

KEY = "producer_byte_rate 1 user"
"""The key of the limit that they share."""


def use(rate: float = 0.0, waiting: int = 0, used: float = 0.0, limit: float = 100.0) -> LocalUse:
    """The use of that limit at one process."""
    return LocalUse(key=KEY, limit=limit, used=used, rate=rate, average=rate, waiting=waiting)


@dataclass
class ReportingGroup:
    """Processes whose records arrive at once."""

    now: float = 10.0
    log: list[tuple[Report, int]] = field(default_factory=list)
    processes: dict[str, Sharing] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)

    def start(self, name: str) -> Sharing:
        self.processes[name] = Sharing(name)
        self.read[name] = 0
        return self.processes[name]

    def turn(self, seconds: float = REPORT_SECONDS, **uses: LocalUse) -> None:
        """Each process named, or all, reports; then each of them reads everything."""
        self.now += seconds
        for name, process in self.processes.items():
            report = process.report([uses[name]] if name in uses else [], self.now)
            if report is not None:
                self.log.append((report, int(self.now * 1000)))
        for name in self.processes:
            self.catch_up(name)

    def catch_up(self, name: str) -> None:
        while self.read[name] < len(self.log):
            report, at_ms = self.log[self.read[name]]
            self.processes[name].see(report, self.read[name], at_ms)
            self.read[name] += 1


def two() -> tuple[ReportingGroup, Sharing, Sharing]:
    """Two processes that know each other."""
    group = ReportingGroup()
    a, b = group.start("a"), group.start("b")
    for _ in range(4):
        group.turn()
    return group, a, b
