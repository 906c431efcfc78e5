"""`python -m bench.sharing.crowd`: 100 processes that share the limits of 100,000 entities, under faults.

First nothing happens in the simulation (simulated_crowd.py). Then processes are killed, started and
suspended, demand moves from process to process, reports are late, lost or doubled, all clocks are wrong, the
broker's clock jumps, and the log is away. Then all is quiet again. The command ends with exit status 1 if a
rule does not hold. The figures of a seed are the same on every machine, except for CPU time and memory.
"""

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import mean, median, pstdev
from typing import Final

from bench.output.line_chart import COLORS, INK, Line, LineChart
from bench.output.page import RESULTS
from bench.sharing.processes import PICTURES, Metered
from bench.sharing.simulated_crowd import LIMIT, SETTLING, Crowd, Plan
from proxy.quota.measure.bucket import Bucket
from proxy.quota.sharing.local_uses import LocalUses
from proxy.quota.sharing.shared_bucket import CREDIT_SECONDS, SETTLE_SECONDS
from proxy.quota.sharing.sharing import Sharing
from proxy.store.sharing.share_records import decode_report, encode_report
from tests.support.sharing.simulation import RULE

MOST: Final = 1.05
"""Rule 1: the highest mean rate over 5 s, as a part of the limit."""
LEAST: Final = 0.98
"""Rule 2: the lowest mean rate of a limit in use, as a part of it."""
DEVIATION: Final = 0.15
"""Rule 3: the largest coefficient of variation of one-second rates."""
UNFAIR: Final = 0.15
"""Rule 4: the largest relative deviation of a process's rate from its part of the connections."""
WITHIN: Final = {"moved": 1.0, "taken over": 3.0, "joined": 1.0}
"""Rule 5: the seconds after which demand that has moved has its limit at the other process, the part of a
killed process is in use, and a new process has its part.
"""
EXCESS: Final = 1.0 + CREDIT_SECONDS / SETTLE_SECONDS
"""The largest sum of the parts of a limit, less the reserves, as a part of the limit."""
EVERY: Final = 0.3
"""Seconds between two faults."""
WINDOW: Final = 50
"""Tenths of a second in which the rule of 5 seconds is checked."""


@dataclass
class Result:
    """The figures, by name; `broken` are those that break a rule."""

    figures: list[tuple[str, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    pictures: dict[str, LineChart] = field(default_factory=dict)

    def add(self, name: str, value: str, *, holds: bool = True) -> None:
        """Add a figure. `holds`: whether it meets its rule."""
        self.figures.append((name, value))
        if not holds:
            self.broken.append(f"{name}: {value}")


def steady(crowd: Crowd, result: Result, when: str) -> None:
    """Check rules 1 to 4 while nothing happens. `when` names the phase in the figures."""
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
    """Return the sum of each 5 consecutive seconds, by the tenth of a second in which they begin."""
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
    """Check rule 5: demand moves, a process is killed, one starts."""
    some = crowd.random.sample(crowd.hot, max(crowd.plan.hot // 5, 1))
    targets = {entity: crowd.random.choice(crowd.serving) for entity in some}
    for entity, process in targets.items():
        crowd.move(entity, process)
    have: dict[int, Callable[[], float]] = {
        entity: partial(crowd.fraction, entity, process) for entity, process in targets.items()
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
    """Measure the time until each has what is wanted."""
    since, times = crowd.now, []
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
    """Check rule 1 while faults happen, and the largest sum of the parts of a limit."""
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
        tenths = crowd.used(entity, first, end)
        saved = _saved(tenths)
        for place, used in enumerate(_windows(tenths)):
            fives.append((used - saved[place]) / LIMIT / (WINDOW / 10))
    name = "during faults: most in 5 s / limit, after the burst of one process"
    result.add(name, f"{max(fives):.3f}", holds=max(fives) <= MOST)
    log.delay, log.loss, log.twice = (0.005, 0.04), 0.0, 0.0
    for process in crowd.crowd:
        if process.running and process.stopped:
            process.resume(crowd.now)
    crowd.go_on(2 * SETTLING)
    worst = crowd.worst_parts
    result.add("largest sum of the parts of a limit", f"{worst:.3f}", holds=worst <= EXCESS + 1e-9)


def picture(crowd: Crowd, first: int, marks: list[tuple[float, str]]) -> LineChart:
    """Draw the highest, the lowest and the median rate of the hot limits in each second, from the tenth of a
    second `first` on.
    """
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
    """Measure what sharing costs a process while the hot limits are in use."""
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
    """Measure the memory and the CPU time of a process that has clients of all entities."""
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
    """Simulate a plan: a quiet phase, changes, faults, and a quiet phase again."""
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
    parser = argparse.ArgumentParser(prog="python -m bench.sharing.crowd", description=__doc__)
    usual = Plan()
    parser.add_argument(
        "--processes", type=int, default=usual.processes, help="processes that share (default: %(default)s)"
    )
    parser.add_argument(
        "--entities", type=int, default=usual.entities, help="entities with a limit (default: %(default)s)"
    )
    parser.add_argument(
        "--hot", type=int, default=usual.hot, help="limits that are in use (default: %(default)s)"
    )
    parser.add_argument(
        "--faults",
        type=float,
        default=usual.faults,
        help="simulated seconds of faults (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=usual.seed, help="seed of all random numbers (default: %(default)s)"
    )
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
