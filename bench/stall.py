"""`python -m bench.stall`: the longest wait of a client while a proxy with 10,000 tenants is scraped.

One connection sends one request after the other and records the latency, while the other tenants send at a
steady rate. Phases in which /metrics and /api/quotas are requested without a pause alternate with phases
without scrapes. The increase of the longest wait is the time for which a scrape blocks the event loop.
"""

import json
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench.load.client import BUFFER_SIZE, Client
from bench.load.drive import connect
from bench.load.frames import produce_request
from bench.load.poller import Poller
from bench.load.schedule import Schedule
from bench.options import add_quick, add_rounds, bench_parser
from bench.output.page import Page
from bench.peers import quota_proxy
from bench.peers.peer import HOST, Running, Setting
from bench.rounds import fake_broker
from bench.tenants import ROTATING, START_SECONDS, drive

RATE: Final = 500
"""Requests per second of the other tenants."""
CONNECTIONS: Final = 50
"""Connections of the other tenants."""
QUIET: Final = "nobody scrapes"
SCRAPED: Final = "scraped without a pause"
TARGET_MS: Final = 25.0
"""The increase of the longest wait that a scrape may cause."""


@contextmanager
def others(running: Running, tenants: int, seconds: float) -> Iterator[None]:
    """Run the other tenants' load while the block runs, for at most `seconds`."""
    command = [sys.executable, "-m", "bench.load.drive", "--address", f"{HOST}:{running.port}"]
    command += ["--connections", str(CONNECTIONS), "--rate", str(RATE)]
    command += ["--requests", str(int(RATE * seconds * 2))]
    command += ["--client-id", quota_proxy.TENANT, "--client-ids", str(tenants)]
    command += ["--rotate", str(max(tenants // CONNECTIONS, 1))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def probe(running: Running, seconds: float) -> list[float]:
    """Send one request after the other; return their latencies in seconds."""
    poller = Poller()
    schedule = Schedule(poller)
    frame = produce_request(f"{quota_proxy.TENANT}-0", 1, 100)
    client = Client(
        connect(f"{HOST}:{running.port}"), [frame], poller, bytearray(BUFFER_SIZE), schedule.on_response
    )
    found = array("d")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        schedule.closed_loop([client], 100, 1)
        found.extend(schedule.latencies)
    client.close()
    return list(found)


def phase(running: Running, scraped: bool, seconds: float) -> tuple[list[float], dict[str, float]]:
    """Run a phase; return the latencies of the probe in seconds, and the figures of the scraper."""
    assert running.admin_port is not None
    if not scraped:
        return probe(running, seconds), {}
    command = [sys.executable, "-m", "bench.load.scrape", "--port", str(running.admin_port)]
    command += ["--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as scraper:
        waits = probe(running, seconds)
        output, _ = scraper.communicate()
    said: dict[str, float] = json.loads(output)
    return waits, said


def report(found: dict[str, list[float]], scrapes: Sequence[dict[str, float]]) -> list[str]:
    """Format the figures as Markdown; waits are in seconds."""
    lines = ["| | requests | median ms | p99.9 ms | longest ms |", "|---|---:|---:|---:|---:|"]
    longest: dict[str, float] = {}
    for name, waits in found.items():
        ordered = sorted(waits)
        longest[name] = ordered[-1] * 1000
        median, high = ordered[len(ordered) // 2] * 1000, ordered[int(len(ordered) * 0.999)] * 1000
        lines.append(f"| {name} | {len(ordered)} | {median:.2f} | {high:.2f} | {longest[name]:.2f} |")
    scrape_count = sum(scrape["count"] for scrape in scrapes)
    size = sum(scrape["bytes"] for scrape in scrapes) / max(scrape_count, 1) / 1000
    slowest = max((scrape["slowest_s"] for scrape in scrapes), default=0.0) * 1000
    added = longest[SCRAPED] - longest[QUIET]
    word = "met" if added <= TARGET_MS else "missed"
    return [
        *lines,
        "",
        f"- {scrape_count:.0f} scrapes of {size:.0f} kB each on average; the slowest took {slowest:.0f} ms",
        f"- Scrapes add {added:.1f} ms to the longest wait; at most {TARGET_MS:.0f}: {word}",
    ]


def main() -> None:
    """Run the command."""
    parser = bench_parser("stall", __doc__)
    parser.add_argument("--active", type=int, default=10_000, help="tenants (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="length of a phase, in seconds (default: %(default)s)"
    )
    add_rounds(parser, "phases of each kind", 3)
    add_quick(parser, "1,000 tenants, and one round of 2 s")
    options = parser.parse_args()
    if options.quick:
        options.active, options.seconds, options.rounds = 1_000, 2.0, 1
    page = Page()
    peer = quota_proxy.installed()
    page.facts |= {"build": peer.name, "active tenants": str(options.active)}
    found: dict[str, list[float]] = {QUIET: [], SCRAPED: []}
    scrapes: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        port = stack.enter_context(fake_broker(Path(folder), join=False))
        setting = Setting(port, options.active, Path(folder), start_seconds=START_SECONDS)
        running = stack.enter_context(peer.start(setting))
        drive(running, ROTATING, options.active, options.active)  # all tenants are active from here on
        whole = options.seconds * options.rounds * len(found) + 60
        stack.enter_context(others(running, options.active, whole))
        for _ in range(options.rounds):
            for name, waits in found.items():
                more, said = phase(running, name == SCRAPED, options.seconds)
                waits += more
                if said:
                    scrapes.append(said)
        page.remarks += running.doubts()
    page.save(options.name, report(found, scrapes))


if __name__ == "__main__":
    main()
