"""Processes that share a limit, on a simulated clock, with a log whose records take time to arrive."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.debt import Debt
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.sharing.first_parts import SharedFirstParts
from proxy.quota.sharing.local_uses import LocalUses
from proxy.quota.sharing.reported_uses import LocalUse
from proxy.quota.sharing.reports import Report
from proxy.quota.sharing.sharing import REPORT_SECONDS, Sharing
from proxy.server.limit_sharing import FREED_PAUSE, GROWN_PAUSE, JOIN_PAUSE

RULE = RateRule(burst_seconds=1.0)
NODE_ID = 1
FIVE = 5.0
STEP = 0.01
REPORTS_AT_MOST = 8
REVIEW_SECONDS = 0.2
RESUME_SECONDS = 0.3
UP_SECONDS = 7200.0
"""How long the machines run already: a monotonic clock is not below zero."""
EPOCH_MS = 1_700_000_000_000


@dataclass
class Log:
    """The topic: a record is appended some time after it was sent, and read some time after that."""

    random: Random
    delay: tuple[float, float] = (0.005, 0.04)
    records: list[tuple[int, Report]] = field(default_factory=list)
    """The broker's timestamp and the report, by offset."""
    appended_at: list[float] = field(default_factory=list)
    away: bool = False
    loss: float = 0.0
    """The probability that a report never arrives."""
    twice: float = 0.0
    """The probability that a report is appended twice."""
    clock_ms: int = 0
    """How far the broker's clock is off."""
    in_order: bool = False
    """Whether a process's reports are appended in the order in which it has sent them."""
    sent: list[tuple[float, int, Report]] = field(default_factory=list)
    last_sent: dict[str, float] = field(default_factory=dict)
    numbers: int = 0

    def send(self, report: Report, now: float) -> None:
        if self.random.random() < self.loss:
            return
        for _ in range(2 if self.random.random() < self.twice else 1):
            self._put(report, now)

    def _put(self, report: Report, now: float) -> None:
        self.numbers += 1
        at = now + self.random.uniform(*self.delay)
        if self.in_order:
            at = max(at, self.last_sent.get(report.instance, at))
            self.last_sent[report.instance] = at
        heapq.heappush(self.sent, (at, self.numbers, report))

    def run(self, now: float) -> None:
        while self.sent and self.sent[0][0] <= now and not self.away:
            at, _, report = heapq.heappop(self.sent)
            self.appended_at.append(max(at, now))
            self.records.append((EPOCH_MS + self.clock_ms + int(max(at, now) * 1000), report))


@dataclass(eq=False)
class Connection:
    """A producer that sends its next request as soon as it is read from."""

    who: Identity
    size: float
    entity: int = 0
    ready_at: float = 0.0
    waited_at: float = -10.0
    debt: Debt | None = None


@dataclass(eq=False)
class Process:
    """A proxy, which serves clients as soon as the others know it. Its clock may differ from that of the
    simulation.
    """

    name: str
    log: Log
    limit: float
    start: float
    skew: float = 0.0
    """Its clock, less that of the simulation."""
    averages: bool = False
    """Whether the buckets have averages, as broker-side quotas have; their clients have to be `steady`."""
    connections: list[Connection] = field(default_factory=list)
    steady: float = 0.0
    """Units per second of a client that sends evenly, and waits as long as the bucket has a debt."""
    running: bool = True
    stopped: bool = False
    served: list[tuple[float, float, int]] = field(default_factory=list)
    """Time, units and entity."""
    joined: bool = False
    """Whether the others have known it."""
    buckets: list[Bucket] = field(default_factory=list)
    """Those of the entities whose clients it has served."""
    known: dict[int, Bucket] = field(default_factory=dict)
    """The same, by entity."""
    _position: int = 0
    _read_at: float = 0.0
    _report_at: float = 0.0
    _told_at: float = 0.0
    """When it last looked at its buckets."""

    def __post_init__(self) -> None:
        self.skew += UP_SECONDS
        self.sharing = Sharing(self.name)
        self.uses = LocalUses()
        self._first_parts = SharedFirstParts(NODE_ID)
        self._report_at = self.start
        self._divide(self.start)

    def meet(self, entity: int, now: float) -> Bucket:
        """The bucket of an entity, which is made when its clients come for the first time."""
        bucket = self.known.get(entity)
        if bucket is None:
            at = now + self.skew
            rule = RateRule(averages=True) if self.averages else RULE
            bucket = Bucket(quota="q", limit=self.limit, rule=rule, now=at, user=f"u{entity}")
            self._first_parts.give(bucket, at)
            self.known[entity] = bucket
            self.buckets.append(bucket)
        return bucket

    def part(self, entity: int = 0) -> float:
        """The part of an entity's limit that the process may use; 0.0 if it has had none of its clients."""
        bucket = self.known.get(entity)
        return 0.0 if bucket is None else bucket.limit / self.limit

    def connect(self, count: int, size: float, now: float, entity: int = 0, *, waits: bool = False) -> None:
        """Add connections. With `waits`, the first request of each waits until the debt that is there is
        paid, as in the relay.
        """
        bucket = self.known.get(entity)
        ready_at = now + bucket.wait(now + self.skew) if waits and bucket is not None else now
        for number in range(count):
            who = Identity("user", f"{self.name}-{number}", "10.0.0.1")
            self.connections.append(Connection(who, size, entity, ready_at=ready_at))

    def resume(self, now: float) -> None:
        """Run again after a stop; the first records arrive a little later."""
        self.stopped = False
        self._read_at = now + RESUME_SECONDS
        self._report_at = now + REPORT_SECONDS
        self._tell(now)

    def step(self, now: float) -> None:
        if not self.running or self.stopped:
            return
        if now >= self._read_at:
            self._read(now)
        if self.sharing.joined_or_left:
            self._report_at = min(self._report_at, self._told_at + GROWN_PAUSE)
        if self.sharing.freed:
            self._report_at = min(self._report_at, self._told_at + FREED_PAUSE)
        if now >= self._report_at:
            self._report_at = now + (REPORT_SECONDS if self.joined else JOIN_PAUSE)
            self._tell(now)
        if not self.joined:
            return
        self._serve_all(now)
        if self.steady > 0.0 and self.meet(0, now).wait(now + self.skew) <= 0.0:
            self._use(self.meet(0, now), self.steady * STEP, now, None, 0)

    def _read(self, now: float) -> None:
        lag = self.log.random.uniform(*self.log.delay)
        while self._position < len(self.log.records):
            if self.log.appended_at[self._position] + lag > now or self.log.away:
                break
            stamp, report = self.log.records[self._position]
            self.sharing.see(report, self._position, stamp)
            self._position += 1
        if self.sharing.grown:
            self.sharing.grown = False
            self.sharing.wake(now + self.skew)
            self.uses.divide(self.sharing, now + self.skew)

    def _tell(self, now: float) -> None:
        self._told_at = now
        self.sharing.joined_or_left = self.sharing.freed = False
        uses = self._divide(now)
        for _ in range(REPORTS_AT_MOST):
            report = self.sharing.report(uses, now + self.skew)
            if report is not None:
                self.log.send(report, now)
            if not self.sharing.more:
                return

    def _divide(self, now: float) -> list[LocalUse]:
        """What LimitSharing does, in one slice."""
        self.sharing.wake(now + self.skew)
        self.uses.begin(now + self.skew)
        if self.sharing.joined:
            self.joined = True
            self._first_parts.sharing = self.sharing
        self.uses.look(NODE_ID, self.buckets, self.sharing, now + self.skew, divide=True)
        return self.uses.end()

    def _serve_all(self, now: float) -> None:
        reviews = int(now / STEP) % int(REVIEW_SECONDS / STEP) == 0
        for connection in self.connections:
            if connection.ready_at <= now or (reviews and connection.debt is not None):
                self._serve(connection, now)

    def _serve(self, connection: Connection, now: float) -> None:
        """Review a wait, and send the next request if it is over."""
        if connection.debt is not None:
            connection.ready_at = connection.debt.review(now + self.skew) - self.skew
            connection.waited_at = now
            if connection.ready_at > now:
                return
            connection.debt = None
        bucket = self.meet(connection.entity, now)
        seconds = self._use(bucket, connection.size, now, connection.who, connection.entity)
        if seconds > 0.0:
            bucket.count_throttle(seconds, 1, now + self.skew + seconds)
            connection.ready_at = now + seconds
            connection.debt = Debt(bucket, connection.who, now + self.skew + seconds)

    def _use(self, bucket: Bucket, value: float, now: float, who: Identity | None, entity: int) -> float:
        self.served.append((now, value, entity))
        return bucket.record(value, now + self.skew, who)


@dataclass
class Simulation:
    """Processes, and a clock."""

    seed: int = 0
    limit: float = 1e6
    now: float = 0.0
    processes: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = Log(Random(self.seed))

    def start(self, name: str, skew: float = 0.0, averages: bool = False) -> Process:
        process = Process(name, self.log, self.limit, self.now, skew, averages)
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

    def rates(
        self, since: float, width: float = 1.0, only: Process | None = None, entity: int = 0
    ) -> list[float]:
        """Units per second of an entity by intervals of `width` from `since` to now."""
        count = int((self.now - since) / width)
        sums = [0.0] * count
        for process in [only] if only else self.processes:
            for at, value, whose in process.served:
                index = int((at - since) / width)
                if whose == entity and 0 <= index < count and at >= since:
                    sums[index] += value
        return [total / width for total in sums]

    def most(self, since: float, entity: int = 0, *, after_burst: bool = False) -> float:
        """The most in any five seconds from `since` on, as a part of what the limit allows.

        after_burst: less the tokens that one process with the whole limit would have had at their begin.
        """
        served = self._served(since, entity)
        burst = self.limit * RULE.burst_seconds
        most = together = 0.0
        tokens, before, end = 0.0, since, 0
        for at, value in served:
            while end < len(served) and served[end][0] < at + FIVE - STEP / 2:
                together += served[end][1]
                end += 1
            tokens = min(tokens + self.limit * (at - before), burst)
            most = max(most, together - (max(tokens, 0.0) if after_burst else 0.0))
            tokens = max(tokens - value, -burst)
            together -= value
            before = at
        return most / (FIVE * self.limit)

    def _served(self, since: float, entity: int) -> list[tuple[float, float]]:
        """When units of an entity were used from `since` on, and how many, in the order of time."""
        return sorted(
            (at, value)
            for process in self.processes
            for at, value, whose in process.served
            if whose == entity and at >= since
        )
