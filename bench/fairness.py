"""`python -m bench.fairness`: how one quota is shared, and how a tenant over its quota affects others.

Shares: two equal producers send as fast as they can under one quota. Latency: a calm tenant sends at a steady
rate, in turn alone and beside a tenant that sends far more than its quota.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench.load.client import BUFFER_SIZE, Client
from bench.load.drive import connect
from bench.load.frames import produce_request
from bench.load.poller import Poller
from bench.options import add_quick, add_rounds, bench_parser
from bench.output.page import Page
from bench.peers import quota_proxy
from bench.peers.peer import HOST, Running, Setting
from bench.rounds import DriveFailed, Sample, fake_broker

SHARED: Final = "shared"
HOG: Final = "hog"
CALM: Final = "calm"
SIZE: Final = 16_384
"""Bytes of a batch of SHARED and of HOG."""
QUOTA: Final = 2_000_000
HOG_QUOTA: Final = 1_000_000
"""Bytes per second."""
QUOTAS: Final = (
    {"entity": {"client-id": SHARED}, "producer_byte_rate": QUOTA},
    {"entity": {"client-id": HOG}, "producer_byte_rate": HOG_QUOTA},
    # It is unreachable: the calm tenant's quota is checked like the others, and never throttles.
    {"entity": {"client-id": CALM}, "producer_byte_rate": quota_proxy.BYTES_PER_SECOND},
)
CALM_RATE: Final = 300
"""Requests per second."""
HOG_CONNECTIONS: Final = 4
LEAST_SHARE: Final = 0.4
"""The least part of the requests that each of the two producers must complete."""
TARGET: Final = 1.5
"""How many times its p99 alone the calm tenant's p99 beside HOG may be."""


def shares(running: Running, seconds: float) -> list[float]:
    """Return the part of all requests that each of two equal producers completes."""
    poller = Poller()
    counts: dict[Client, int] = {}

    def on_response(client: Client, due: float) -> None:
        counts[client] += 1
        client.offer(time.perf_counter())

    buffer, frame = bytearray(BUFFER_SIZE), produce_request(SHARED, 1, SIZE)
    for _ in range(2):
        client = Client(connect(f"{HOST}:{running.port}"), [frame], poller, buffer, on_response)
        counts[client] = 0
        client.offer(time.perf_counter())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        poller.wait(0.1)
    for client in counts:
        client.close()
    total = max(sum(counts.values()), 1)
    return [count / total for count in counts.values()]


def _driver(running: Running, client_id: str, *options: str) -> list[str]:
    command = [sys.executable, "-m", "bench.load.drive", "--address", f"{HOST}:{running.port}"]
    return [*command, "--client-id", client_id, *options]


@contextmanager
def hog(running: Running) -> Iterator[None]:
    """Run a tenant far over its quota while the block runs."""
    options = ("--connections", str(HOG_CONNECTIONS), "--size", str(SIZE), "--requests", "1000000000")
    process = subprocess.Popen(
        _driver(running, HOG, *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def calm(running: Running, seconds: float) -> Sample:
    """Drive the calm tenant; return the driver's figures. Raises DriveFailed."""
    options = ("--connections", "4", "--rate", str(CALM_RATE), "--requests", str(int(CALM_RATE * seconds)))
    command = _driver(running, CALM, *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 10 + 60, check=False)
    if done.returncode != 0:
        raise DriveFailed(f"{running.name}: {done.stderr.strip()}\n{running.last_words()}")
    sample: Sample = json.loads(done.stdout)
    return sample


def report(parts: Sequence[float], alone: Sequence[float], beside: Sequence[float]) -> list[str]:
    """Format the figures as Markdown: shares, and the calm tenant's p99 in ms by round."""
    ratio = statistics.median(after / before for before, after in zip(alone, beside, strict=True))
    least = min(parts)
    shared = "met" if least >= LEAST_SHARE else "missed"
    left_alone = "met" if ratio <= TARGET else "missed"
    return [
        "| | p99 ms, median of the rounds |",
        "|---|---:|",
        f"| alone | {statistics.median(alone):.2f} |",
        f"| beside a tenant over its quota | {statistics.median(beside):.2f} |",
        "",
        f"- Of two equal producers the lesser gets {least:.0%}; at least {LEAST_SHARE:.0%}: {shared}",
        f"- Beside a tenant over its quota, p99 is {ratio:.2f} times; at most {TARGET}: {left_alone}",
    ]


def main() -> None:
    """Run the command."""
    parser = bench_parser("fairness", __doc__)
    parser.add_argument(
        "--seconds",
        type=float,
        default=10.0,
        help="length of a measurement, in seconds (default: %(default)s)",
    )
    add_rounds(parser, "measurements of each latency")
    add_quick(parser, "one round of 2 s")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds = 2.0, 1
    page = Page()
    peer = quota_proxy.installed()
    page.facts["build"] = peer.name
    alone: list[float] = []
    beside: list[float] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        port = stack.enter_context(fake_broker(Path(folder), join=False))
        running = stack.enter_context(peer.start(Setting(port, 0, Path(folder), quotas=QUOTAS)))
        parts = shares(running, options.seconds)
        calm(running, 1.0)  # warms up
        for _ in range(options.rounds):
            alone.append(calm(running, options.seconds)["p99_ms"])
            with hog(running):
                beside.append(calm(running, options.seconds)["p99_ms"])
    page.save(options.name, report(parts, alone, beside))


if __name__ == "__main__":
    main()
