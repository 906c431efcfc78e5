"""`python -m bench.sharing`: what several processes let through together, simulated.

The simulation runs the code of the proxy (`proxy/quota/sharing`) on a simulated clock, with a log whose
records take 5 to 40 ms to be appended and as long to be read. The figures are the same on every machine.
`--pictures` writes the pictures of docs/running-several.md.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, pstdev
from typing import Final

from bench.output.line_chart import COLORS, INK, Line, LineChart
from bench.output.page import RESULTS
from proxy.quota.sharing.reports import Report
from proxy.store.sharing.share_records import decode_report, encode_report
from tests.support.sharing.simulation import Process, Simulation

LIMIT: Final = 1e6
"""Bytes per second."""
SIZE: Final = 20e3
"""Bytes of a request."""
PROCESSES: Final = (2, 3, 10, 30, 100)
SETTLING: Final = 4.0
"""Seconds after which the parts of the limit have settled."""
SECONDS: Final = 20.0
"""Simulated seconds that are measured."""
PICTURES: Final = Path(__file__).parents[2] / "docs" / "images"
DEMANDS: Final[dict[str, Callable[[int], int]]] = {
    "equal": lambda number: 2,
    "one process": lambda number: 4 if number == 0 else 0,
    "9 : 1 : 9 : 1 ...": lambda number: 1 if number % 2 else 9,
}
"""The connections of a process by its number."""


@dataclass(frozen=True)
class Flow:
    """What all processes let through, as parts of the limit."""

    mean: float
    deviation: float
    """The coefficient of variation of one-second rates."""
    most: float
    """The highest mean over 5 s."""


def flow(processes: int, connections: Callable[[int], int]) -> Flow:
    """Simulate steady demand. `connections` returns the number of a process's connections, by its number."""
    simulation = Simulation(processes)
    started = [simulation.start(f"p{number}") for number in range(processes)]
    simulation.run(5.0)
    # A connection sends at most a request in each step of the simulation.
    size = min(SIZE, LIMIT / sum(map(connections, range(processes))) / 5)
    for number, process in enumerate(started):
        process.connect(connections(number), size, simulation.now)
    simulation.run(SETTLING)
    since = simulation.now
    simulation.run(SECONDS)
    rates = simulation.rates(since)
    fives = [mean(rates[first : first + 5]) for first in range(len(rates) - 4)]
    return Flow(mean(rates) / LIMIT, pstdev(rates) / mean(rates), max(fives) / LIMIT)


def seconds_to_move(seed: int) -> float:
    """Return the seconds from the moment at which demand moves to another process until it has the limit
    there.
    """
    simulation, (a, b, _) = _three(seed)
    a.connect(4, SIZE, simulation.now)
    simulation.run(10.0)
    moved = simulation.now
    a.connections = []
    b.connect(4, SIZE, moved)
    return _seconds_until(simulation, lambda: b.part() >= 0.98)


def seconds_to_move_some(seed: int) -> float:
    """Return the same where 8 of 9 connections move."""
    simulation, (a, b, _) = _three(seed)
    a.connect(9, SIZE, simulation.now)
    simulation.run(10.0)
    moved = simulation.now
    a.connections = a.connections[:1]
    b.connect(8, SIZE, moved)
    return _seconds_until(simulation, lambda: b.part() >= 0.98 * 8 / 9)


def seconds_to_take_over(seed: int) -> float:
    """Return the seconds from the moment at which a process is killed until the others have its part."""
    simulation, processes = _three(seed)
    for process in processes:
        process.connect(2, SIZE, simulation.now)
    simulation.run(10.0)
    processes[0].running = False
    others = processes[1:]
    return _seconds_until(simulation, lambda: sum(process.part() for process in others) >= 0.98)


def seconds_to_join(seed: int) -> float:
    """Return the seconds from the start of a process until it has its part of what all processes may use: the
    limit and the credit, which may be negative.
    """
    simulation, processes = _three(seed)
    for process in processes:
        process.connect(2, SIZE, simulation.now)
    simulation.run(10.0)
    new = simulation.start("d")
    new.connect(2, SIZE, simulation.now)
    parts = [*processes, new]
    return _seconds_until(simulation, lambda: new.part() >= 0.24 * sum(process.part() for process in parts))


def _three(seed: int) -> tuple[Simulation, list[Process]]:
    """Start three processes, which look at their buckets at different moments."""
    simulation = Simulation(seed)
    processes = []
    for name in "abc":
        processes.append(simulation.start(name))
        simulation.run(simulation.log.random.uniform(0.0, 0.2))
    simulation.run(5.0 + simulation.log.random.uniform(0.0, 1.0))
    return simulation, processes


def _seconds_until(simulation: Simulation, reached: Callable[[], bool]) -> float:
    """Run until the condition holds, for 30 simulated seconds at most; return the simulated seconds."""
    since = simulation.now
    while not reached() and simulation.now < since + 30.0:
        simulation.run(0.01)
    return simulation.now - since


def _hot_buckets(hot: int) -> tuple[Simulation, list[Process]]:
    """Let three processes share `hot` buckets, all at their limits, for two seconds. A report that overtakes
    another one counts as a loss, after which a process reports everything again; a producer keeps the order.
    """
    simulation = Simulation(1, limit=LIMIT)
    simulation.log.in_order = True
    processes = [simulation.start(name) for name in "abc"]
    simulation.run(3.0)
    for process in processes:
        for entity in range(hot):
            process.connect(1, SIZE * 10, simulation.now, entity)
    simulation.run(2.0)
    return simulation, processes


def report_bytes(hot: int) -> float:
    """Return the bytes per second that each of 3 processes appends while `hot` buckets are at their
    limits.
    """
    simulation, processes = _hot_buckets(hot)
    first, seconds = len(simulation.log.records), 2.0
    simulation.run(seconds)
    size = sum(len(encode_report(report)) for _, report in simulation.log.records[first:])
    return size / seconds / len(processes)


def core_part(hot: int) -> float:
    """The part of a core that each of 3 processes uses for sharing while `hot` buckets are at their limits.

    It is the CPU time of its reports and of those that it reads, with their encoding, per simulated second.
    """
    simulation, processes = _hot_buckets(hot)
    first, seconds = len(simulation.log.records), 4.0
    metered = [Metered(process) for process in processes]
    simulation.run(seconds)
    used = sum(each.seconds for each in metered)
    used += _seconds_of_records([report for _, report in simulation.log.records[first:]], len(processes))
    return used / seconds / len(processes)


class Metered:
    """Measures the CPU time that a simulated process uses for sharing."""

    def __init__(self, process: Process) -> None:
        self.seconds = 0.0
        self._read: Final = process._read
        self._tell: Final = process._tell
        process._read = lambda now: self._measure(self._read, now)  # type: ignore[method-assign]
        process._tell = lambda now: self._measure(self._tell, now)  # type: ignore[method-assign]

    def _measure(self, call: Callable[[float], None], now: float) -> None:
        before = time.process_time()
        call(now)
        self.seconds += time.process_time() - before


def _seconds_of_records(reports: Sequence[Report], readers: int) -> float:
    """The CPU time of encoding each report once, and of decoding it at each of its readers."""
    before = time.process_time()
    for report in reports:
        value = encode_report(report)
        for _ in range(readers):
            decode_report(value)
    return time.process_time() - before


def story() -> LineChart:
    """Three processes: demand moves, one is killed, one is suspended, one starts."""
    simulation, (a, b, c) = _three(1)
    began = simulation.now
    a.connect(4, SIZE, simulation.now)
    simulation.run(10.0)
    b.connect(4, SIZE, simulation.now)
    c.connect(4, SIZE, simulation.now)
    simulation.run(10.0)
    a.running = False
    simulation.run(10.0)
    b.stopped = True
    simulation.run(10.0)
    b.resume(simulation.now)
    simulation.run(10.0)
    d = simulation.start("d")
    d.connect(4, SIZE, simulation.now)
    simulation.run(10.0)
    named = zip("abcd", (a, b, c, d), COLORS, strict=False)
    lines = [
        Line(f"process {name}", _millions(simulation.rates(began, only=process)), color)
        for name, process, color in named
    ]
    lines.append(Line("all", _millions(simulation.rates(began)), INK, width=3))
    marks = [
        (0.0, "clients at a"),
        (10.0, "also at b and c"),
        (20.0, "a is killed"),
        (30.0, "b is suspended"),
        (40.0, "b continues"),
        (50.0, "d starts"),
    ]
    return LineChart("One limit of 1 MB/s, shared", "MB/s", 1.6, lines, marks)


def alternatives() -> LineChart:
    """The same demand, which moves from one process to three, with and without sharing."""
    lines = [
        Line("shared", _moving_demand(shared=True, part=1.0), INK, width=3),
        Line("each process has the limit", _moving_demand(shared=False, part=1.0), COLORS[0], dashes="6 3"),
        Line("each has a third", _moving_demand(shared=False, part=1 / 3), COLORS[1], dashes="2 3"),
    ]
    marks = [(0.0, "clients at 1 process"), (20.0, "at 3 processes"), (40.0, "at 2 processes")]
    return LineChart("The sum of three processes, limit 1 MB/s", "MB/s", 3.2, lines, marks)


def _moving_demand(*, shared: bool, part: float) -> list[float]:
    """Return the MB/s of three processes together, by second. `shared`: whether they share LIMIT; otherwise
    each has `part` of it for itself.
    """
    if shared:
        together = Simulation(1)
        worlds = [together]
        processes = [together.start(name) for name in "abc"]
    else:
        worlds = [Simulation(1, limit=LIMIT * part) for _ in "abc"]
        processes = [world.start("a") for world in worlds]
    for count in (0, 1, 3, 2):
        for number, process in enumerate(processes):
            process.connections = []
            if number < count:
                process.connect(4, SIZE, worlds[0].now)
        for world in worlds:
            world.run(20.0 if count else 5.0)
    return [sum(rates) for rates in zip(*[_millions(world.rates(5.0)) for world in worlds], strict=True)]


def _millions(rates: Sequence[float]) -> list[float]:
    return [rate / 1e6 for rate in rates]


def figures(processes: Sequence[int]) -> list[str]:
    """The tables, as Markdown."""
    lines = [
        "| processes | connections | mean | coefficient of variation | most in 5 s |",
        "|---|---|---|---|---|",
    ]
    for count in processes:
        for name, connections in DEMANDS.items():
            found = flow(count, connections)
            lines.append(
                f"| {count} | {name} | {found.mean:.3f} | {found.deviation:.3f} | {found.most:.3f} |"
            )
    lines += ["", "| what | median | longest of 20 |", "|---|---|---|"]
    for name, measure in (
        ("moved demand has its limit", seconds_to_move),
        ("8 of 9 connections that move have 8/9 of it", seconds_to_move_some),
        ("the part of a killed process is in use", seconds_to_take_over),
        ("a new process has its part", seconds_to_join),
    ):
        times = sorted(measure(seed) for seed in range(20))
        lines.append(f"| {name} | {times[10]:.2f} s | {times[-1]:.2f} s |")
    for hot in (100, 1000):
        rate, part = report_bytes(hot) / 1e3, core_part(hot)
        lines.append(
            f"\nWith {hot} limits in use on 3 processes, each process writes {rate:.0f} kB/s, and uses "
            f"{part:.1%} of this machine's core for sharing."
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sharing", description=__doc__)
    parser.add_argument("--pictures", action="store_true", help="write docs/images/sharing*.svg, too")
    parser.add_argument(
        "--most",
        type=int,
        default=30,
        help="simulate at most this many processes (default: %(default)s); 100 take minutes",
    )
    options = parser.parse_args()
    if options.pictures:
        PICTURES.mkdir(exist_ok=True)
        (PICTURES / "sharing.svg").write_text(story().svg())
        (PICTURES / "sharing-alternatives.svg").write_text(alternatives().svg())
    text = "\n".join(figures([count for count in PROCESSES if count <= options.most])) + "\n"
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "sharing.md").write_text(text)
    print(text)
