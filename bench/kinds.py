"""`python -m bench.kinds`: what each kind of quota costs, per request and per partition.

Proxies share one fake broker. Each enforces one kind more than the one before it, from nothing to every kind
with usage events. The driver alternates among them, with requests of one partition and of many.
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.options import add_quick, add_rounds, bench_parser
from bench.output.page import Page
from bench.peers import quota_proxy
from bench.peers.peer import Setting
from bench.rounds import Sample, drive, fake_broker
from bench.scenarios import Scenario

TENANTS: Final = 1000
MANY: Final = 24
"""Partitions of a large request."""
SCENARIOS: Final = (
    Scenario("produce_1", "", "produce", 120, 40_000, depth=5),
    Scenario("produce_24", "", "produce", 900, 15_000, partitions=MANY, depth=5),
    Scenario("fetch_1", "", "fetch", 120, 40_000, depth=5),
    Scenario("fetch_24", "", "fetch", 900, 15_000, partitions=MANY, depth=5),
)
Found = Mapping[str, Mapping[str, Sequence[Sample]]]
"""The samples of the rounds, by what is enforced and by scenario."""


def settings(port: int, folder: Path) -> dict[str, Setting]:
    """Return the setting of each proxy by the name of its row, in the order of the table."""
    client = Setting(port, TENANTS, folder)
    found = {"nothing": replace(client, tenants=0), "client": client}
    for number, kind in enumerate(quota_proxy.KINDS):
        found[f"+ {kind}"] = replace(client, kinds=quota_proxy.KINDS[: number + 1])
    return found


def report(found: Found) -> list[str]:
    """Format the CPU of the best rounds as Markdown, with the difference to the row before."""
    columns = [scenario.name for scenario in SCENARIOS]
    titles = [*columns, "a partition of Produce", "a partition of Fetch"]
    lines = ["CPU in us per request and, in brackets, the difference to the row before.", ""]
    lines += [f"| enforced | {' | '.join(titles)} |", f"|---{'|---:' * len(titles)}|"]
    before: list[float] = []
    for name, samples in found.items():
        cpu = [min(sample["cpu_ms_per_1k_req"] for sample in samples[column]) for column in columns]
        cpu += [(cpu[1] - cpu[0]) / (MANY - 1), (cpu[3] - cpu[2]) / (MANY - 1)]
        cells = [
            f"{value:.2f} ({value - before[at]:+.2f})" if before else f"{value:.2f}"
            for at, value in enumerate(cpu)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        before = cpu
    return lines


def main() -> None:
    """Run the command."""
    parser = bench_parser("kinds", __doc__)
    add_rounds(parser, "runs of each scenario")
    add_quick(parser, "a tenth of the requests")
    options = parser.parse_args()
    scenarios = [scenario.quick() if options.quick else scenario for scenario in SCENARIOS]
    page = Page()
    peer = quota_proxy.installed()
    page.facts["build"] = peer.name
    with tempfile.TemporaryDirectory(prefix="bench-") as name, ExitStack() as stack:
        folder = Path(name)
        port = stack.enter_context(fake_broker(folder, join=False))
        proxies = {
            enforced: stack.enter_context(peer.start(setting))
            for enforced, setting in settings(port, folder).items()
        }
        found: dict[str, dict[str, list[Sample]]] = {
            enforced: {scenario.name: [] for scenario in scenarios} for enforced in proxies
        }
        for _ in range(options.rounds):
            for scenario in scenarios:
                for enforced, running in proxies.items():
                    found[enforced][scenario.name].append(drive(scenario, running, folder))
        page.remarks += [doubt for running in proxies.values() for doubt in running.doubts()]
    page.save(options.name, report(found))


if __name__ == "__main__":
    main()
