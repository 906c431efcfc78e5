"""`python -m bench.sharing_crowd`: 100 processes that share the limits of 100,000 entities, under faults.

The simulation runs the code of the proxy (`proxy/quota/sharing`) on a simulated clock, as bench.sharing does.
Each entity has clients at one to four processes. Most send far less than their limits. Some (`--hot`) have
connections that send as much as they may.

First nothing happens. Then processes are killed, started and suspended, demand moves from process to
process, reports are late, lost or doubled, all clocks are wrong and that of the broker jumps, and the log is
away. Then all is quiet again. The command ends with exit status 1 if a rule does not hold. The figures of a
seed are the same on every machine, but for CPU time and memory.
"""

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from statistics import mean, median, pstdev
from typing import Final

from bench.line_chart import COLORS, INK, Line, LineChart
from bench.page import RESULTS
from bench.sharing import PICTURES, Metered
from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.sharing.local_uses import LocalUses
from proxy.quota.sharing.shared_bucket import CREDIT_SECONDS, SETTLE_SECONDS
from proxy.quota.sharing.sharing import Sharing
from proxy.quota.sharing.waterfill import RESERVE
from proxy.store.share_records import decode_report, encode_report
from tests.support.sharing.simulation import REVIEW_SECONDS, STEP, Connection, Process, Simulation

LIMIT: Final = 1e6
SIZE: Final = 20e3
COLD_USE: Final = 0.005
"""What a request of a client whose limit is not in use takes of it; each sends one in ten seconds."""
CONNECTIONS: Final = (1, 2, 4)
SETTLING: Final = 6.0
RULE: Final = RateRule(burst_seconds=1.0)
MOST: Final = 1.05
LEAST: Final = 0.98
DEVIATION: Final = 0.15
UNFAIR: Final = 0.15
WITHIN: Final = {"moved": 1.0, "taken over": 3.0, "joined": 1.0}
"""Seconds after which demand that has moved has its limit at the other process, the part of a killed process
is in use, and a new process has its part.
"""
EXCESS: Final = 1.0 + CREDIT_SECONDS / SETTLE_SECONDS
FAULTS: Final = ("kill", "start", "suspend", "continue", "move", "move", "move", "move")
EVERY: Final = 0.3
"""Seconds between two faults."""
WINDOW: Final = 50
"""Tenths of a second in which the rule of 5 seconds is checked."""
YOUNG_SECONDS: Final = 0.5
"""A bucket has an equal part of the limit until its process looks at it for the first time."""


@dataclass(frozen=True)
class Plan:
    """How much is simulated. Times are in seconds."""

    processes: int = 100
    entities: int = 100_000
    hot: int = 200
    quiet: float = 10.0
    faults: float = 30.0
    seed: int = 1


class CrowdProcess(Process):
    """A process that knows only the entities whose clients have come to it.

    Its work is in proportion to the requests that it serves: connections that wait take no time.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.known: dict[int, Bucket] = {}
        self.hot: dict[int, Bucket] = {}
        self.known_since: dict[int, float] = {}
        self.came: list[tuple[float, int, float]] = []
        """When clients of a hot entity came, the entity, and what their first requests may use at once."""
        self.tenths: dict[int, dict[int, float]] = {}
        """By hot entity: the use in each tenth of a second."""
        self._connected: dict[int, list[Connection]] = {}
        self._due: list[tuple[float, int, Connection]] = []
        """When each connection is to be served: a heap."""
        self._numbers = count()
        self._cold: list[Bucket] = []

    @property
    def serves(self) -> bool:
        return self.running and not self.stopped

    def meet(self, entity: int, now: float) -> Bucket:
        """Clients of an entity come for the first time."""
        user = f"tenant-{entity}"
        bucket = Bucket(quota="q", limit=self.limit, rule=RULE, now=now + self.skew, user=user)
        bucket.share(self.sharing.first_part, now + self.skew)
        self.known[entity] = bucket
        self.known_since[entity] = now
        self.buckets.append(bucket)
        return bucket

    def meet_cold(self, entity: int, now: float) -> None:
        """Clients of an entity come that use little."""
        self._cold.append(self.meet(entity, now))

    def connect_hot(self, entity: int, connections: int, now: float) -> None:
        """Clients of a hot entity come, with so many connections."""
        # A new bucket has its first burst. The debts of clients stay behind at the process that they left.
        new = entity not in self.known
        bucket = self.hot[entity] = self.meet(entity, now) if new else self.known[entity]
        burst = bucket.limit * (RULE.burst_seconds + YOUNG_SECONDS) if new else 0.0
        self.came.append((now, entity, burst + connections * SIZE))
        for _ in range(connections):
            number = next(self._numbers)
            who = Identity(bucket.user, f"{self.name}-{number}", "10.0.0.1")
            connection = Connection(who, SIZE, bucket, entity, ready_at=now)
            self._connected.setdefault(entity, []).append(connection)
            heappush(self._due, (now, number, connection))

    def disconnect(self, entity: int) -> int:
        """The clients of a hot entity go; return the number of their connections."""
        return len(self._connected.pop(entity, ()))

    def connected(self, entity: int) -> int:
        """The number of its connections."""
        return len(self._connected.get(entity, ()))

    @property
    def all_connected(self) -> int:
        """The number of connections."""
        return sum(map(len, self._connected.values()))

    def use_a_little(self, now: float, random: Random) -> None:
        """Each client of a cold entity sends something once in ten seconds, on average."""
        if self.serves and self._cold:
            for bucket in random.choices(self._cold, k=int(len(self._cold) / 1000 + random.random())):
                bucket.record(COLD_USE * self.limit, now + self.skew)

    def _serve_all(self, now: float) -> None:
        due = self._due
        while due and due[0][0] <= now:
            _, number, connection = heappop(due)
            if connection not in self._connected.get(connection.entity, ()):
                continue
            self._serve(connection, now)
            # A review finds out whether the part of the limit has changed.
            at = now + STEP if connection.debt is None else min(connection.ready_at, now + REVIEW_SECONDS)
            heappush(due, (max(at, now + STEP), number, connection))

    def _use(self, bucket: Bucket, value: float, now: float, who: Identity | None, entity: int) -> float:
        of_entity = self.tenths.setdefault(entity, {})
        tenth = int(now * 10 + 1e-6)
        of_entity[tenth] = of_entity.get(tenth, 0.0) + value
        return bucket.record(value, now + self.skew, who)


@dataclass
class Crowd(Simulation):
    """All processes, and the clients of all entities."""

    plan: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.random = Random(self.plan.seed)
        self.crowd: list[CrowdProcess] = []
        self.worst_parts = 0.0
        """The largest sum of the parts of a limit, less the reserves."""
        for number in range(self.plan.processes):
            self.begin(f"p{number}")
            # Processes look at their buckets at different moments.
            self.run(self.random.uniform(0.0, 4.0 / self.plan.processes))
        self.run(SETTLING)
        for entity in range(self.plan.hot, self.plan.entities):
            for process in self.random.sample(self.crowd, self.random.choice((1, 1, 2))):
                process.meet_cold(entity, self.now)
        for entity in self.hot:
            for process in self.random.sample(self.crowd, self.random.randint(1, 4)):
                process.connect_hot(entity, self.random.choice(CONNECTIONS), self.now)
        self.run(SETTLING)

    @property
    def hot(self) -> range:
        """The hot entities."""
        return range(self.plan.hot)

    @property
    def serving(self) -> list[CrowdProcess]:
        """The processes that run and are not suspended."""
        return [process for process in self.crowd if process.serves]

    def begin(self, name: str) -> CrowdProcess:
        """A process starts, with a wrong clock."""
        skew = self.random.uniform(-3600.0, 3600.0)
        process = CrowdProcess(name, self.log, LIMIT, self.now, skew)
        self.processes.append(process)
        self.crowd.append(process)
        return process

    def go_on(self, seconds: float) -> None:
        """Run, with little traffic of all entities, and check the parts of the hot ones."""
        self.run(seconds, self._between)

    def _between(self, now: float) -> None:
        for process in self.crowd:
            process.use_a_little(now, self.random)
        if int(now * 100 + 1e-6) % 5 == 0:
            self._check_parts()

    def _check_parts(self) -> None:
        serving = self.serving
        together = dict.fromkeys(self.hot, 0.0)
        for process in serving:
            for entity, bucket in process.hot.items():
                if self.now - process.known_since[entity] > YOUNG_SECONDS:
                    together[entity] += bucket.limit
        # All reserves of those that know each other are in the limit.
        apart = sum(process.sharing.stalled or not process.sharing.joined for process in serving)
        reserves = RESERVE * (apart + 1)
        self.worst_parts = max(self.worst_parts, max(together.values()) / LIMIT - reserves)

    def parts(self, entity: int, processes: Sequence[CrowdProcess]) -> float:
        """The sum of their parts of a limit."""
        return sum(process.hot[entity].limit / LIMIT for process in processes if entity in process.hot)

    def connected_parts(self, entity: int) -> float:
        """The sum of the parts of the processes that have clients of the entity."""
        return self.parts(entity, [process for process in self.serving if process.connected(entity)])

    def used(self, entity: int, first: int, end: int, only: CrowdProcess | None = None) -> list[float]:
        """Units in each of these tenths of a second, by all processes, also those that have ended."""
        sums = [0.0] * (end - first)
        for process in [only] if only else self.crowd:
            for tenth, value in process.tenths.get(entity, {}).items():
                if first <= tenth < end:
                    sums[tenth - first] += value
        return sums

    # What happens

    def kill(self, process: CrowdProcess) -> None:
        """A process is killed; its clients go to another one."""
        process.running = False
        other = self.random.choice(self.serving)
        for entity in process.hot:
            gone = process.disconnect(entity)
            if gone:
                other.connect_hot(entity, gone, self.now)

    def move(self, entity: int, to: CrowdProcess) -> None:
        """All clients of an entity go to another process."""
        gone = sum(process.disconnect(entity) for process in self.crowd)
        to.connect_hot(entity, max(gone, 1), self.now)

    def fault(self) -> None:
        """One of FAULTS happens."""
        random, serving = self.random, self.serving
        what = random.choice(FAULTS)
        suspended = [process for process in self.crowd if process.running and process.stopped]
        if what == "kill" and len(serving) > self.plan.processes * 0.9:
            self.kill(random.choice(serving))
        elif what == "start" and len(serving) < self.plan.processes:
            new = self.begin(f"n{len(self.crowd)}")
            for entity in random.sample(self.hot, min(5, self.plan.hot)):
                new.connect_hot(entity, 1, self.now)
        elif what == "suspend" and len(suspended) < 3:
            random.choice(serving).stopped = True
        elif what == "continue" and suspended:
            random.choice(suspended).resume(self.now)
        elif what == "move":
            self.move(random.choice(self.hot), random.choice(serving))


@dataclass
class Result:
    """What was found; `broken` are the rules that do not hold."""

    figures: list[tuple[str, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    pictures: dict[str, LineChart] = field(default_factory=dict)

    def add(self, name: str, value: str, *, holds: bool = True) -> None:
        """Add a figure."""
        self.figures.append((name, value))
        if not holds:
            self.broken.append(f"{name}: {value}")


def steady(crowd: Crowd, result: Result, when: str) -> None:
    """Rules 1 to 4, while nothing happens."""
    first = int(crowd.now * 10 + 1e-6)
    crowd.go_on(crowd.plan.quiet)
    end = int(crowd.now * 10 + 1e-6)
    means, deviations, fives, unfair = [], [], [], []
    for entity in crowd.hot:
        tenths = crowd.used(entity, first, end)
        rates = [sum(tenths[place : place + 10]) for place in range(0, len(tenths) - 9, 10)]
        means.append(mean(rates) / LIMIT)
        deviations.append(pstdev(rates) / mean(rates))
        fives.append(max(_windows(tenths)) / LIMIT / 5)
        connected = {process: process.connected(entity) for process in crowd.serving if entity in process.hot}
        total = sum(connected.values())
        for process, some in connected.items():
            rate = sum(crowd.used(entity, first, end, process)) / crowd.plan.quiet
            unfair.append(abs(rate / LIMIT - some / total) * total / some if some else 0.0)
    result.add(f"{when}: most in 5 s / limit", f"{max(fives):.3f}", holds=max(fives) <= MOST)
    lowest = f"{min(means):.3f}, mean of all {mean(means):.3f}"
    result.add(f"{when}: lowest rate / limit", lowest, holds=min(means) >= LEAST)
    deviation = max(deviations)
    result.add(f"{when}: largest deviation", f"{deviation:.3f}", holds=deviation <= DEVIATION)
    result.add(f"{when}: least fair part", f"{max(unfair):.1%} off", holds=max(unfair) <= UNFAIR)


def _windows(tenths: Sequence[float]) -> list[float]:
    """The sums of all 5 seconds."""
    sums = [sum(tenths[:WINDOW])]
    for place in range(WINDOW, len(tenths)):
        sums.append(sums[-1] + tenths[place] - tenths[place - WINDOW])
    return sums


def _saved(tenths: Sequence[float]) -> list[float]:
    """Return at each tenth of a second the burst that one process would allow: what was not used before."""
    most = RULE.burst_seconds * LIMIT
    tokens, saved = 0.0, []
    for used in tenths:
        saved.append(max(tokens, 0.0))
        tokens = max(min(tokens + LIMIT / 10 - used, most), -most)
    return saved


def changes(crowd: Crowd, result: Result) -> None:
    """Rule 5: demand moves, a process is killed, one starts."""
    some = crowd.random.sample(crowd.hot, max(crowd.plan.hot // 5, 1))
    targets = {entity: crowd.random.choice(crowd.serving) for entity in some}
    for entity, process in targets.items():
        crowd.move(entity, process)
    have: dict[int, Callable[[], float]] = {
        entity: partial(crowd.parts, entity, [process]) for entity, process in targets.items()
    }
    _wait(crowd, result, "moved", have, dict.fromkeys(have, LEAST))
    crowd.go_on(SETTLING)
    victim = max(crowd.serving, key=lambda process: process.all_connected)
    shared = [entity for entity in victim.hot if 0 < victim.connected(entity) < _connections(crowd, entity)]
    crowd.kill(victim)
    have = {entity: partial(crowd.connected_parts, entity) for entity in shared}
    _wait(crowd, result, "taken over", have, dict.fromkeys(have, LEAST))
    crowd.go_on(SETTLING)
    new = crowd.begin("new")
    some = crowd.random.sample(crowd.hot, max(crowd.plan.hot // 10, 1))
    for entity in some:
        new.connect_hot(entity, 2, crowd.now)
    have = {entity: partial(crowd.parts, entity, [new]) for entity in some}
    _wait(crowd, result, "joined", have, {e: 0.9 * 2 / _connections(crowd, e) for e in some})
    crowd.go_on(SETTLING)


def _connections(crowd: Crowd, entity: int) -> int:
    return sum(process.connected(entity) for process in crowd.serving)


def _wait(
    crowd: Crowd, result: Result, what: str, have: dict[int, Callable[[], float]], wanted: dict[int, float]
) -> None:
    """Measure the time until each has what is wanted. A young bucket has an equal part at first."""
    since, times = crowd.now, []
    crowd.go_on(YOUNG_SECONDS)
    while have and crowd.now < since + 10.0:
        for entity in [entity for entity, part in have.items() if part() >= wanted[entity]]:
            del have[entity]
            times.append(crowd.now - since)
        crowd.go_on(0.05)
    times += [10.0] * len(have)
    longest = max(times, default=0.0)
    text = f"median {median(times):.2f} s, longest {longest:.2f} s, of {len(times)}" if times else "none"
    result.add(what, text, holds=longest <= WITHIN[what])


def faults(crowd: Crowd, result: Result) -> None:
    """Rule 1, whatever happens."""
    log, plan = crowd.log, crowd.plan
    log.delay, log.loss, log.twice = (0.005, 0.15), 0.02, 0.02
    first = int(crowd.now * 10 + 1e-6)
    began = crowd.now
    while crowd.now < began + plan.faults:
        part = (crowd.now - began) / plan.faults
        log.away = 0.5 < part < 0.6
        log.clock_ms = 1_800_000 if part > 0.7 else 0
        crowd.fault()
        crowd.go_on(EVERY)
    end = int(crowd.now * 10 + 1e-6)
    fives = []
    for entity in crowd.hot:
        came = [
            (at, units) for process in crowd.crowd for at, whose, units in process.came if whose == entity
        ]
        tenths = crowd.used(entity, first, end)
        saved = _saved(tenths)
        for place, used in enumerate(_windows(tenths)):
            begin = (first + place) / 10
            bursts = sum(units for at, units in came if begin - 1.0 <= at < begin + WINDOW / 10)
            fives.append((used - saved[place] - bursts) / LIMIT / (WINDOW / 10))
    text = f"{max(fives):.3f}"
    result.add("during faults: most in 5 s / limit, less bursts", text, holds=max(fives) <= MOST)
    log.delay, log.loss, log.twice = (0.005, 0.04), 0.0, 0.0
    for process in crowd.crowd:
        if process.running and process.stopped:
            process.resume(crowd.now)
    crowd.go_on(2 * SETTLING)
    worst = crowd.worst_parts
    result.add("largest sum of the parts of a limit", f"{worst:.3f}", holds=worst <= EXCESS + 1e-9)


def picture(crowd: Crowd, first: int, marks: list[tuple[float, str]]) -> LineChart:
    """The rates of all hot limits by seconds."""
    end = int(crowd.now * 10 + 1e-6)
    rates = []
    for entity in crowd.hot:
        tenths = crowd.used(entity, first, end)
        rates.append([sum(tenths[place : place + 10]) / LIMIT for place in range(0, len(tenths) - 9, 10)])
    seconds = list(zip(*rates, strict=True))
    lines = [
        Line("highest", [max(each) for each in seconds], COLORS[1], dashes="2 3"),
        Line("lowest", [min(each) for each in seconds], COLORS[0], dashes="6 3"),
        Line("median", [median(each) for each in seconds], INK, width=3),
    ]
    title = f"{crowd.plan.hot} limits in use at {crowd.plan.processes} processes: rate / limit"
    return LineChart(title, "", 2.4, lines, marks)


def cost(crowd: Crowd, result: Result) -> None:
    """What sharing costs a process, while the hot limits are in use."""
    first, seconds = len(crowd.log.records), 2.0
    serving = crowd.serving
    metered = [Metered(process) for process in serving]
    crowd.go_on(seconds)
    reports = [report for _, report in crowd.log.records[first:]]
    before = time.process_time()
    values = [encode_report(report) for report in reports]
    encoded = time.process_time()
    for value in values:
        decode_report(value)
    decoded = time.process_time()
    used = sum(each.seconds for each in metered) / len(serving)
    used += (encoded - before) / len(serving) + decoded - encoded
    written = sum(map(len, values)) / seconds
    result.add("CPU of sharing, each process", f"{used / seconds:.1%} of a core")
    per_process = f"{written / len(serving) / 1e3:.1f} kB/s written, {written / 1e3:.0f} kB/s read"
    result.add("reports, each process", per_process)


def one_process(entities: int, result: Result) -> None:
    """What a process takes that has clients of all entities."""
    tracemalloc.start()
    buckets = [
        Bucket(quota="producer_byte_rate", limit=LIMIT, rule=RULE, now=0.0, user=f"tenant-{number}")
        for number in range(entities)
    ]
    of_buckets = tracemalloc.get_traced_memory()[0]
    sharing, uses = Sharing("p"), LocalUses()
    for now in (1.0, 2.0):
        uses.begin(now)
        uses.look(1, buckets, sharing, now, divide=True)
        uses.end()
    of_uses = tracemalloc.get_traced_memory()[0] - of_buckets
    tracemalloc.stop()
    before = time.process_time()
    uses.begin(3.0)
    uses.look(1, buckets, sharing, 3.0, divide=True)
    uses.end()
    took = time.process_time() - before
    memory = f"{of_buckets / 1e6:.0f} MB of buckets, and {of_uses / 1e6:.0f} MB for sharing"
    result.add(f"memory of a process with clients of {entities:,} entities", memory)
    result.add("a look at all of them, while idle", f"{took * 1000:.0f} ms of CPU")


def run(plan: Plan) -> Result:
    """Simulate."""
    result = Result()
    crowd = Crowd(plan.seed, limit=LIMIT, plan=plan)
    first = int(crowd.now * 10 + 1e-6)
    marks = [(0.0, "quiet")]

    def mark(what: str) -> None:
        marks.append((crowd.now - first / 10, what))

    steady(crowd, result, "before faults")
    mark("demand moves, a process is killed, one starts")
    changes(crowd, result)
    mark("faults")
    faults(crowd, result)
    mark("quiet")
    steady(crowd, result, "after faults")
    result.pictures["sharing-crowd.svg"] = picture(crowd, first, marks)
    cost(crowd, result)
    one_process(plan.entities, result)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sharing_crowd", description=__doc__)
    usual = Plan()
    parser.add_argument("--processes", type=int, default=usual.processes)
    parser.add_argument("--entities", type=int, default=usual.entities)
    parser.add_argument("--hot", type=int, default=usual.hot, help="limits that are in use")
    parser.add_argument("--faults", type=float, default=usual.faults, help="simulated seconds of faults")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--pictures", action="store_true", help="write docs/images/sharing-crowd.svg, too")
    options = parser.parse_args()
    # The buckets stay until the end, and the collector would take a third of the time to look at them.
    gc.disable()
    began = time.monotonic(), time.process_time()
    plan = Plan(options.processes, options.entities, options.hot, usual.quiet, options.faults, options.seed)
    result = run(plan)
    lines = ["| what | figure |", "|---|---|", *(f"| {name} | {value} |" for name, value in result.figures)]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "sharing-crowd.md").write_text(text)
    for name, chart in result.pictures.items():
        ((PICTURES if options.pictures else RESULTS) / name).write_text(chart.svg())
    print(text)
    print(f"{time.monotonic() - began[0]:.0f} s, {time.process_time() - began[1]:.0f} s of CPU")
    for rule in result.broken:
        print(f"FAILED: {rule}")
    sys.exit(1 if result.broken else 0)


if __name__ == "__main__":
    main()
