"""`python -m bench.workers`: what two workers serve, and what a request costs them, beside one process.

The driver alternates among no proxy, one process, and two workers with their supervisor. The driver and the
fake broker need cores, too, and the table has their parts. On two cores, they leave less than a core to the
proxy: compare the CPU per request, and not the requests per second.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.load.process import cpu_seconds
from bench.options import add_quick, add_rounds, bench_parser
from bench.output.page import Page
from bench.peers import quota_proxy
from bench.peers.direct import Direct
from bench.peers.peer import Running, Setting
from bench.rounds import Sample, drive, fake_broker
from bench.scenarios import Scenario

TENANTS: Final = 1000
SCENARIO: Final = Scenario("produce_small", "", "produce", 100, 100_000, connections=16)
WARM_UP: Final = 1.1
"""The driver sends this many times the requests of the scenario, and measures those after the warm-up."""
BROKER_CPU: Final = "broker_cpu_s"
Found = Mapping[str, Sequence[Sample]]
"""The samples of the rounds, by what serves."""


def measure(scenario: Scenario, running: Running, folder: Path) -> Sample:
    """Run the driver once; the sample has the CPU of the broker, too."""
    # What this process has started and still runs: the broker, and the proxies.
    proxy = 0.0 if running.pid is None else cpu_seconds(running.pid)
    before = cpu_seconds(os.getpid()) - proxy
    sample = drive(scenario, running, folder)
    proxy = 0.0 if running.pid is None else cpu_seconds(running.pid)
    after = cpu_seconds(os.getpid()) - proxy
    return {**sample, BROKER_CPU: (after - before) / WARM_UP}


def report(found: Found) -> list[str]:
    """Format as Markdown: the round with the median of the CPU per request, and the range of all rounds."""
    lines = [
        "| | requests/s | CPU of the proxy, us per request | cores: proxy | driver | broker |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, samples in found.items():
        ordered = sorted(samples, key=_cpu)
        sample = ordered[len(ordered) // 2]
        cores = [sample[each] / sample["seconds"] for each in ("cpu_s", "driver_cpu_s", BROKER_CPU)]
        cells = [
            f"{sample['requests_per_s']:,.0f}",
            f"{_cpu(sample):.1f} ({_cpu(ordered[0]):.1f} to {_cpu(ordered[-1]):.1f})",
            *(f"{each:.2f}" for each in cores),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _cpu(sample: Sample) -> float:
    """Microseconds per request."""
    return float(sample["cpu_ms_per_1k_req"])


def main() -> None:
    """Run the command."""
    parser = bench_parser("workers", __doc__)
    add_rounds(parser, "runs of each case")
    add_quick(parser, "one round with a tenth of the requests")
    options = parser.parse_args()
    scenario, rounds = (SCENARIO.quick(), 1) if options.quick else (SCENARIO, options.rounds)
    page = Page()
    peer = quota_proxy.installed()
    page.facts["build"] = peer.name
    with tempfile.TemporaryDirectory(prefix="bench-") as name, ExitStack() as stack:
        folder = Path(name)
        port = stack.enter_context(fake_broker(folder, join=False))
        serving = {"no proxy": Direct().start(Setting(port, 0, folder))}
        for workers in (1, 2):
            own = folder / str(workers)
            own.mkdir()
            setting = Setting(port, TENANTS, own, workers=workers)
            serving[f"workers: {workers}"] = stack.enter_context(peer.start(setting))
        found: dict[str, list[Sample]] = {each: [] for each in serving}
        for _ in range(rounds):
            for each, running in serving.items():
                found[each].append(measure(scenario, running, folder))
        page.remarks += [doubt for running in serving.values() for doubt in running.doubts()]
    page.save(options.name, report(found))


if __name__ == "__main__":
    main()
