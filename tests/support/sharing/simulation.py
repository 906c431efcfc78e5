"""Processes that share a limit, on a simulated clock, with a log whose records take time to arrive."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.debt import Debt
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.sharing.reports import Report
from proxy.quota.sharing.sharing import REPORT_SECONDS, LocalUse, Sharing

STEP = 0.01
REVIEW_SECONDS = 0.2
RESUME_SECONDS = 0.3
EPOCH_MS = 1_700_000_000_000


@dataclass
class Log:
    """The topic: a record is appended some time after it was sent, and read some time after that."""

    random: Random
    delay: tuple[float, float] = (0.005, 0.04)
    records: list[tuple[int, Report]] = field(default_factory=list)
    """The broker's timestamp and the report, by offset."""
    away: bool = False
    sent: list[tuple[float, int, Report]] = field(default_factory=list)
    numbers: int = 0

    def send(self, report: Report, now: float) -> None:
        self.numbers += 1
        heapq.heappush(self.sent, (now + self.random.uniform(*self.delay), self.numbers, report))

    def run(self, now: float) -> None:
        while self.sent and self.sent[0][0] <= now and not self.away:
            at, _, report = heapq.heappop(self.sent)
            self.records.append((EPOCH_MS + int(max(at, now) * 1000), report))


@dataclass(eq=False)
class Connection:
    """A producer that sends its next request as soon as it is read from."""

    who: Identity
    size: float
    ready_at: float = 0.0
    waited_at: float = -10.0
    debt: Debt | None = None


@dataclass(eq=False)
class Process:
    """A proxy with one bucket."""

    name: str
    log: Log
    limit: float
    start: float
    connections: list[Connection] = field(default_factory=list)
    steady: float = 0.0
    """Units per second of a client that sends evenly, and waits as long as the bucket has a debt."""
    running: bool = True
    stopped: bool = False
    served: list[tuple[float, float]] = field(default_factory=list)
    used: float = 0.0
    _position: int = 0
    _read_at: float = 0.0
    _report_at: float = 0.0
    _last_used: float = 0.0
    _last_report: float = 0.0

    def __post_init__(self) -> None:
        self.sharing = Sharing(self.name)
        self.bucket = Bucket(quota="q", limit=self.limit, rule=RateRule(burst_seconds=1.0), now=self.start)
        self.rule = RateRule(burst_seconds=1.0)
        self._report_at = self.start
        self._last_report = self.start
        self._apply(self.start)

    def connect(self, count: int, size: float, now: float) -> None:
        for number in range(count):
            who = Identity("user", f"{self.name}-{number}", "10.0.0.1")
            self.connections.append(Connection(who, size, ready_at=now))

    def resume(self, now: float) -> None:
        """Run again after a stop; the first records arrive a little later."""
        self.stopped = False
        self._read_at = now + RESUME_SECONDS
        self._report_at = now + REPORT_SECONDS
        self._tell(now)
        self._apply(now)

    def step(self, now: float) -> None:
        if not self.running or self.stopped:
            return
        if now >= self._read_at:
            self._read(now)
        if now >= self._report_at:
            self._report_at = now + REPORT_SECONDS
            self._tell(now)
        self._apply(now)
        for connection in self.connections:
            self._serve(connection, now)
        if self.steady > 0.0 and self.bucket.wait(now) <= 0.0:
            self._use(self.steady * STEP, now, None)

    def _read(self, now: float) -> None:
        lag_ms = self.log.random.uniform(*self.log.delay) * 1000
        while self._position < len(self.log.records):
            stamp, report = self.log.records[self._position]
            if stamp + lag_ms > EPOCH_MS + now * 1000 or self.log.away:
                break
            self.sharing.see(report, self._position, stamp)
            self._position += 1

    def _tell(self, now: float) -> None:
        debt = max(-self.bucket.tokens.measure(now), 0.0) if self.bucket.tokens else 0.0
        paid = self.used - debt
        rate = (paid - self._last_used) / max(now - self._last_report, STEP)
        self._last_used, self._last_report = paid, now
        waiting = sum(1 for c in self.connections if c.waited_at > now - 1.0)
        if self.steady > 0.0 and self.bucket.wait(now) > 0.0:
            waiting += 1
        report = self.sharing.report(
            [LocalUse(key="q", limit=self.limit, used=paid, rate=rate, waiting=waiting)], now
        )
        if report is not None:
            self.log.send(report, now)

    def _apply(self, now: float) -> None:
        limit = self.limit * self.sharing.part("q")
        if limit != self.bucket.limit:
            self.bucket.configure(limit, self.rule, now)

    def _serve(self, connection: Connection, now: float) -> None:
        if connection.debt is not None:
            if connection.ready_at > now and int(now / STEP) % int(REVIEW_SECONDS / STEP):
                return
            connection.ready_at = connection.debt.review(now)
            connection.waited_at = now
            if connection.ready_at > now:
                return
            connection.debt = None
        seconds = self._use(connection.size, now, connection.who)
        if seconds > 0.0:
            connection.ready_at = now + seconds
            connection.debt = Debt(self.bucket, connection.who, now + seconds)

    def _use(self, value: float, now: float, who: Identity | None) -> float:
        self.used += value
        self.served.append((now, value))
        return self.bucket.record(value, now, who)


@dataclass
class Simulation:
    """Processes, and a clock."""

    seed: int = 0
    limit: float = 1e6
    now: float = 0.0
    processes: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = Log(Random(self.seed))

    def start(self, name: str) -> Process:
        process = Process(name, self.log, self.limit, self.now)
        self.processes.append(process)
        return process

    def run(self, seconds: float, each: Callable[[float], None] = lambda now: None) -> None:
        until = self.now + seconds
        while self.now < until:
            each(self.now)
            self.log.run(self.now)
            for process in self.processes:
                process.step(self.now)
            self.now = round(self.now + STEP, 6)

    def rates(self, since: float, width: float = 1.0, only: Process | None = None) -> list[float]:
        """Units per second by intervals of `width` from `since` to now."""
        count = int((self.now - since) / width)
        sums = [0.0] * count
        for process in [only] if only else self.processes:
            for at, value in process.served:
                index = int((at - since) / width)
                if 0 <= index < count and at >= since:
                    sums[index] += value
        return [total / width for total in sums]
