"""`python -m bench.tenants`: the cost of a request when 100,000 tenants have quotas and 10,000 are active.

Two proxies share one fake broker: one has ten tenants, the other many. The driver alternates between them,
and the CPU per request is compared, in two ways: with one client id per connection, as real clients do; and
with a different client id in every request, so that each has to be looked up.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.options import add_quick, add_rounds, bench_parser
from bench.output.page import Page
from bench.peers import quota_proxy
from bench.peers.peer import HOST, Running, Setting
from bench.rounds import DriveFailed, Sample, fake_broker

FEW: Final = 10
"""The tenants of the proxy with which the other one is compared."""
TARGET: Final = 1.1
"""How many times the CPU of a request with FEW tenants a request with many may take."""
START_SECONDS: Final = 300.0
"""Parsing a YAML file with 100,000 quotas takes long."""
DRIVE_SECONDS: Final = 600.0
"""The timeout of a run of the driver."""


@dataclass(frozen=True)
class Way:
    """How tenants are assigned to connections."""

    name: str
    connections: int
    rotating: bool
    """Whether every request of a connection has a different client id."""


KEEPING: Final = Way("one client id on a connection", 5000, False)
ROTATING: Final = Way("another in every request", 100, True)


def drive(running: Running, way: Way, tenants: int, requests: int) -> Sample:
    """Run the driver over this many tenants; return its figures. Raises DriveFailed."""
    rotate = max(tenants // way.connections, FEW) if way.rotating else 1
    command = [sys.executable, "-m", "bench.load.drive", "--address", f"{HOST}:{running.port}"]
    command += ["--connections", str(way.connections), "--depth", "1", "--requests", str(requests)]
    command += ["--client-id", quota_proxy.TENANT, "--client-ids", str(tenants), "--rotate", str(rotate)]
    command += ["--pid", str(running.pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DRIVE_SECONDS, check=False)
    if done.returncode != 0:
        raise DriveFailed(f"{running.name}: {done.stderr.strip()}\n{running.last_words()}")
    sample: Sample = json.loads(done.stdout)
    return sample


Found = dict[str, Sequence[Sample]]
"""The samples of the rounds, by number of tenants."""


def report(found: dict[str, Found]) -> list[str]:
    """Format the figures as Markdown; within each way, the last row is compared with the first."""
    lines = ["| client ids | tenants | CPU, ms per 1,000 requests | p99 ms | peak MiB |"]
    lines += ["|---|---|---:|---:|---:|"]
    ratios = []
    for way, by_tenants in found.items():
        best: list[float] = []
        for name, samples in by_tenants.items():
            best.append(min(sample["cpu_ms_per_1k_req"] for sample in samples))
            p99 = min(sample["p99_ms"] for sample in samples)
            rss = max(sample["peak_rss_mib"] for sample in samples)
            lines.append(f"| {way} | {name} | {best[-1]:.1f} | {p99:.2f} | {rss:.0f} |")
        ratio = best[-1] / best[0]
        word = "met" if ratio <= TARGET else "missed"
        ratios.append(
            f"- {way}: with many tenants a request takes {ratio:.2f} times the CPU; at most {TARGET}: {word}"
        )
    return [*lines, "", *ratios]


def main() -> None:
    """Run the command."""
    parser = bench_parser("tenants", __doc__)
    parser.add_argument(
        "--configured", type=int, default=100_000, help="tenants with quotas (default: %(default)s)"
    )
    parser.add_argument(
        "--active", type=int, default=10_000, help="tenants that send requests (default: %(default)s)"
    )
    parser.add_argument(
        "--requests", type=int, default=100_000, help="requests in each run (default: %(default)s)"
    )
    add_rounds(parser, "runs of each way")
    add_quick(parser, "fewer tenants, requests and rounds")
    options = parser.parse_args()
    if options.quick:
        options.configured, options.active, options.requests = 5_000, 1_000, 5_000
        options.rounds = 2
    page = Page()
    few, many = f"{FEW}", f"{options.active} of {options.configured}"
    found: dict[str, dict[str, list[Sample]]] = {way.name: {few: [], many: []} for way in (KEEPING, ROTATING)}
    peer = quota_proxy.installed()
    page.facts["build"] = peer.name
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        port = stack.enter_context(fake_broker(Path(folder), join=False))
        proxies = {}
        for name, tenants in ((few, FEW), (many, options.configured)):
            own = Path(folder) / name.replace(" ", "-")
            own.mkdir()
            proxies[name] = stack.enter_context(
                peer.start(Setting(port, tenants, own, start_seconds=START_SECONDS))
            )
        drive(proxies[many], ROTATING, options.active, options.active)  # all tenants are active from here on
        for way in (KEEPING, ROTATING):
            for _ in range(options.rounds):
                found[way.name][few].append(drive(proxies[few], way, FEW, options.requests))
                found[way.name][many].append(drive(proxies[many], way, options.active, options.requests))
        page.remarks += [doubt for running in proxies.values() for doubt in running.doubts()]
    page.save(options.name, report({way: dict(by_tenants) for way, by_tenants in found.items()}))


if __name__ == "__main__":
    main()
