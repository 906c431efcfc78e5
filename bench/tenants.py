"""`python -m bench.tenants`: what a request costs where 100,000 tenants have quotas and 10,000 are active.

Two proxies before one fake broker: one has ten tenants, the other has many. In both, every request of a
connection has another client id than the one before, so that each has to be looked up. The driver takes turns
between the two, and the proxies' CPU for each request is compared.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Final

from bench import machine
from bench.peers import quota_proxy
from bench.peers.peer import HOST, Running, Setting
from bench.rounds import DriveFailed, Sample, fake_broker

RESULTS: Final = Path(__file__).parent / "results"
FEW: Final = 10
CONNECTIONS: Final = 100
TARGET: Final = 1.1
START_SECONDS: Final = 300.0
"""A file with 100,000 quotas takes YAML its time."""
DRIVE_SECONDS: Final = 600.0


def drive(running: Running, tenants: int, requests: int) -> Sample:
    """One run of the driver over this many tenants."""
    rotate = max(tenants // CONNECTIONS, FEW)
    command = [sys.executable, "-m", "bench.load.drive", "--address", f"{HOST}:{running.port}"]
    command += ["--connections", str(CONNECTIONS), "--depth", "1", "--requests", str(requests)]
    command += ["--client-id", quota_proxy.TENANT, "--client-ids", str(tenants), "--rotate", str(rotate)]
    command += ["--pid", str(running.pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DRIVE_SECONDS, check=False)
    if done.returncode != 0:
        raise DriveFailed(f"{running.name}: {done.stderr.strip()}\n{running.last_words()}")
    sample: Sample = json.loads(done.stdout)
    return sample


def report(found: dict[str, Sequence[Sample]], facts: dict[str, str], remarks: Sequence[str]) -> str:
    """The figures as Markdown; the last of `found` is compared with the first."""
    lines = [f"{what}: {value}  " for what, value in facts.items()]
    lines += ["", "| tenants | CPU, ms per 1,000 requests | p99 ms | peak MiB |", "|---|---:|---:|---:|"]
    best: list[float] = []
    for name, samples in found.items():
        best.append(min(sample["cpu_ms_per_1k_req"] for sample in samples))
        p99 = min(sample["p99_ms"] for sample in samples)
        rss = max(sample["peak_rss_mib"] for sample in samples)
        lines.append(f"| {name} | {best[-1]:.1f} | {p99:.2f} | {rss:.0f} |")
    ratio = best[-1] / best[0]
    word = "met" if ratio <= TARGET else "missed"
    lines += ["", f"- With many tenants a request takes {ratio:.2f} times the CPU; at most {TARGET}: {word}"]
    return "\n".join([*lines, *[f"- {remark}" for remark in remarks]]) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.tenants", description=__doc__)
    parser.add_argument("--configured", type=int, default=100_000)
    parser.add_argument("--active", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=100_000, help="in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a twentieth of everything: does it run?")
    parser.add_argument("--name", default=f"tenants-{datetime.now():%Y%m%d-%H%M%S}")
    options = parser.parse_args()
    if options.quick:
        options.configured, options.active, options.requests = 5_000, 1_000, 5_000
        options.rounds = 2
    facts, remarks = machine.facts([]), machine.warnings()
    few, many = f"{FEW}", f"{options.active} of {options.configured}"
    found: dict[str, list[Sample]] = {few: [], many: []}
    peer = quota_proxy.installed()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        port = stack.enter_context(fake_broker(Path(folder), join=False))
        proxies = {}
        for name, tenants in ((few, FEW), (many, options.configured)):
            own = Path(folder) / name.replace(" ", "-")
            own.mkdir()
            proxies[name] = stack.enter_context(
                peer.start(Setting(port, tenants, own, start_seconds=START_SECONDS))
            )
        drive(proxies[many], options.active, options.active)  # everybody is active from here on
        for _ in range(options.rounds):
            found[few].append(drive(proxies[few], FEW, options.requests))
            found[many].append(drive(proxies[many], options.active, options.requests))
        remarks += [doubt for running in proxies.values() for doubt in running.doubts()]
    text = report(dict(found), {"build": peer.name, **facts}, remarks)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{options.name}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
