"""Drives a broker or a proxy: `python -m bench.load.drive --address HOST:PORT --kind produce --pid PROXY`.

Prints one line of JSON: what was sent, how long it took, and the CPU and memory of process `--pid` and its
children.
"""

import argparse
import contextlib
import gc
import json
import os
import socket
import ssl
import sys
import time
from array import array
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.load.client import BUFFER_SIZE, Client, LoadError
from bench.load.frames import fetch_request, produce_request
from bench.load.poller import Poller
from bench.load.process import cpu_seconds, peak_rss_mib
from bench.load.schedule import Schedule


@dataclass(frozen=True)
class Load:
    """What to send: the options of the command. `size`: bytes of each partition. `depth`: requests in flight
    on each connection. `rate`: requests per second over all connections; 0: closed loop.
    """

    kind: str
    size: int
    partitions: int
    connections: int
    depth: int
    rate: float
    requests: int
    client_id: str
    client_ids: int
    rotate: int = 1

    def frames(self, connection: int) -> list[bytes]:
        """Build the request frames of a connection; with several client ids, `rotate` of them in turn."""
        build = produce_request if self.kind == "produce" else fetch_request
        if not self.client_ids:
            return [build(self.client_id, self.partitions, self.size)]
        first = connection * self.rotate
        names = [f"{self.client_id}-{(first + n) % self.client_ids}" for n in range(self.rotate)]
        return [build(name, self.partitions, self.size) for name in names]


def percentile_ms(ordered: "array[float]", part: float) -> float:
    """The quantile `part` in ms of sorted latencies in seconds."""
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] * 1000


def connect(address: str, tls_ca: str | None = None) -> socket.socket:
    """Open a non-blocking connection; over TLS if there is a file of authorities."""
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls_ca is not None:
        context = ssl.create_default_context(cafile=tls_ca)
        sock = context.wrap_socket(sock, server_hostname="localhost")
    sock.setblocking(False)
    return sock


def drive(address: str, load: Load, pid: int | None, tls_ca: str | None = None) -> dict[str, object]:
    """Run the load after a warm-up of a tenth of it; return the result that the command prints.

    Raises LoadError if the peer does not respond as Kafka does.
    """
    poller = Poller()
    schedule = Schedule(poller)
    buffer = bytearray(BUFFER_SIZE)
    clients = [
        Client(connect(address, tls_ca), load.frames(n), poller, buffer, schedule.on_response)
        for n in range(load.connections)
    ]

    def run(requests: int) -> None:
        if load.rate:
            schedule.open_loop(clients, requests, load.rate)
        else:
            schedule.closed_loop(clients, requests, load.depth)

    run(max(load.requests // 10, load.connections))
    moved = -sum(client.sent + client.received for client in clients)
    own = -time.process_time()
    cpu = -cpu_seconds(pid) if pid else 0.0
    seconds = -time.perf_counter()
    run(load.requests)
    seconds += time.perf_counter()
    cpu += cpu_seconds(pid) if pid else 0.0
    own += time.process_time()
    moved += sum(client.sent + client.received for client in clients)
    for client in clients:
        client.close()
    ordered = array("d", sorted(schedule.latencies))
    return {
        **asdict(load),
        "bytes": moved,
        "seconds": seconds,
        "requests_per_s": load.requests / seconds,
        "mib_per_s": moved / seconds / (1 << 20),
        "p50_ms": percentile_ms(ordered, 0.5),
        "p99_ms": percentile_ms(ordered, 0.99),
        "p999_ms": percentile_ms(ordered, 0.999),
        "cpu_s": cpu,
        "cpu_ms_per_1k_req": cpu * 1e6 / load.requests,
        "cpu_s_per_gib": cpu / (moved / (1 << 30)),
        "peak_rss_mib": peak_rss_mib(pid) if pid else 0.0,
        "driver_cpu_s": own,
    }


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.load.drive",
        description="Loads a Kafka broker or proxy with one kind of request.",
    )
    parser.add_argument(
        "--address",
        default="127.0.0.1:29092",
        metavar="HOST:PORT",
        help="broker or proxy (default: %(default)s)",
    )
    parser.add_argument(
        "--kind", choices=["produce", "fetch"], default="produce", help="API (default: %(default)s)"
    )
    parser.add_argument(
        "--size", type=int, default=100, help="bytes of each partition (default: %(default)s)"
    )
    parser.add_argument(
        "--partitions",
        type=int,
        default=1,
        help="partitions of a request, 126 at most (default: %(default)s)",
    )
    parser.add_argument("--connections", type=int, default=4, help="connections (default: %(default)s)")
    parser.add_argument(
        "--depth",
        type=int,
        default=8,
        help="requests in flight on each connection in the closed loop (default: %(default)s)",
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=0.0,
        help="requests per second in total; 0: closed loop (default: %(default)s)",
    )
    parser.add_argument(
        "--requests",
        type=int,
        default=100_000,
        help="requests in total, after a warm-up of a tenth (default: %(default)s)",
    )
    parser.add_argument("--client-id", default="bench", help="client id (default: %(default)s)")
    parser.add_argument(
        "--client-ids",
        type=int,
        default=0,
        help="number of client ids: CLIENT_ID-0, -1 ...; 0: CLIENT_ID alone (default: %(default)s)",
    )
    parser.add_argument(
        "--tls-ca",
        metavar="FILE",
        help="use TLS, and trust the authorities in this file (PEM); default: no TLS",
    )
    parser.add_argument(
        "--rotate",
        type=int,
        default=1,
        help="client ids that a connection uses in turn, with --client-ids (default: %(default)s)",
    )
    parser.add_argument(
        "--pid", type=int, help="process to measure, with its children: CPU and memory; default: none"
    )
    return parser.parse_args()


def main() -> None:
    """Run the command; exit with 1 and a message if the load fails."""
    values = vars(arguments())
    address, pid, tls_ca = values.pop("address"), values.pop("pid"), values.pop("tls_ca")
    # By default Linux may end a wait 50 us late to save wake-ups; the open loop has to send on time.
    with contextlib.suppress(OSError):
        Path(f"/proc/{os.getpid()}/timerslack_ns").write_text("1")
    # This process makes no reference cycles, and a collection would show in the latencies.
    gc.disable()
    try:
        print(json.dumps(drive(address, Load(**values), pid, tls_ca)))
    except (LoadError, OSError) as error:
        sys.exit(f"drive: {address}: {error}")


if __name__ == "__main__":
    main()
