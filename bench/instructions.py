"""`python -m bench.instructions`: the instructions that the proxy executes for a request and its response.

The proxy runs under valgrind's callgrind, which counts the instructions of the process outside the kernel,
from a socket's event until the event loop handles the next one. Unlike times, the counts do not depend on
what else the machine does. There is one connection with one request in flight, so the proxy reads each
request and each response on its own. With --in-flight, it reads several at once; how many, and so the counts,
differs by a few percent from run to run. With --connections, requests of several connections, each with its
own client id, come in turn. Callgrind counts each byte that the processor copies with `rep movsb` as an
instruction.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml

from bench.load.client import BUFFER_SIZE, Client
from bench.load.cold import NODE_ID
from bench.load.drive import Load, connect
from bench.load.poller import Poller
from bench.load.schedule import Schedule
from bench.peers import quota_proxy
from bench.peers.peer import HOST, Setting, free_ports, launch
from bench.peers.tls import make_certificate
from bench.rounds import fake_broker

TENANTS: Final = 1000
"""Client ids with byte quotas."""
COUNTED: Final = "uv__stream_io"
"""libuv's function for the events of a socket. What the proxy does at intervals is not in it: under
callgrind, which makes everything fifty times slower, that would be more than the requests.
"""
REQUESTS: Final = 500
"""Requests that count, unless they are large."""
WARM_UP_PART: Final = 10
"""The requests before the first one that counts, without callgrind, and as many with it, are those that count
divided by this.
"""
START_SECONDS: Final = 300.0
"""The timeout of the proxy's start, which is slow under valgrind."""
DUMP_SECONDS: Final = 30.0
"""The longest wait for a dump of callgrind."""


@dataclass(frozen=True)
class Case:
    """A kind of request."""

    name: str
    kind: str
    size: int
    partitions: int
    tls: bool = False
    requests: int = REQUESTS


CASES: Final = (
    Case("produce_1", "produce", 120, 1),
    Case("produce_24", "produce", 900, 24),
    Case("fetch_1", "fetch", 120, 1),
    Case("fetch_24", "fetch", 900, 24),
    Case("fetch_1mb", "fetch", 1_000_000, 1),
    Case("produce_tls", "produce", 120, 1, tls=True),
    Case("fetch_tls", "fetch", 1_000_000, 1, tls=True, requests=50),
)
ENFORCED: Final = ("nothing", "client", "all")


def setting(enforced: str, port: int, folder: Path, tls: bool) -> Setting:
    """Return the setting of a proxy that enforces one of ENFORCED: `all` are all kinds, with usage events."""
    client = Setting(port, TENANTS, folder, tls, start_seconds=START_SECONDS)
    if enforced == "nothing":
        return replace(client, tenants=0)
    return client if enforced == "client" else replace(client, kinds=quota_proxy.KINDS)


@contextmanager
def counted(where: Setting, checkout: Path, keep: Path) -> Iterator[tuple[int, int]]:
    """Run the proxy of a checkout under callgrind, not counting yet; the values are its port and pid."""
    bootstrap, admin, port = free_ports(3)
    document = quota_proxy.configuration(
        where, bootstrap=bootstrap, admin=admin, broker_port_base=port - NODE_ID
    )
    file = where.folder / "proxy.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    command = [
        *("valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={keep}"),
        f"--toggle-collect={COUNTED}",
        *(sys.executable, "-P", "-m", "proxy", "run", "--config", str(file)),
    ]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    ready = quota_proxy.readiness(admin)
    with launch("proxy", command, where, port, environment=environment, ready=ready) as running:
        assert running.pid is not None, "launch() has started a process"
        yield port, running.pid


def control(pid: int, *options: str) -> None:
    """Tell callgrind in a process to do something."""
    subprocess.run(["callgrind_control", *options, str(pid)], check=True, capture_output=True)


def total(file: Path) -> int:
    """Wait for a dump of callgrind; return its instructions. Raises TimeoutError."""
    deadline = time.monotonic() + DUMP_SECONDS
    while time.monotonic() < deadline:
        if file.exists():
            for line in file.read_text(errors="replace").splitlines():
                if line.startswith(("totals:", "summary:")):
                    return int(line.split()[1])
        time.sleep(0.1)
    raise TimeoutError(f"callgrind has not written {file}")


@dataclass(frozen=True)
class Flow:
    """How many connections send requests, and how many of its requests each has in flight."""

    connections: int = 1
    depth: int = 1


def measure(case: Case, port: int, pid: int, *, folder: Path, keep: Path, dump: int, flow: Flow) -> float:
    """Return the instructions per request; `dump` is the number of the process's dumps before."""
    load = Load(
        kind=case.kind,
        size=case.size,
        partitions=case.partitions,
        connections=flow.connections,
        depth=flow.depth,
        rate=0.0,
        requests=case.requests,
        client_id=quota_proxy.TENANT,
        client_ids=TENANTS,
    )
    warm_up = max(case.requests // WARM_UP_PART, 2 * flow.connections)
    poller = Poller()
    schedule = Schedule(poller)
    tls_ca = str(make_certificate(folder).certificate) if case.tls else None
    buffer = bytearray(BUFFER_SIZE)
    clients = []
    for number in range(flow.connections):
        sock = connect(f"{HOST}:{port}", tls_ca)
        clients.append(Client(sock, load.frames(number), poller, buffer, schedule.on_response))
    schedule.closed_loop(clients, warm_up, flow.depth)
    control(pid, "--instr=on")
    schedule.closed_loop(clients, warm_up, flow.depth)
    control(pid, "--zero")
    schedule.closed_loop(clients, case.requests, flow.depth)
    control(pid, "--dump")
    control(pid, "--instr=off")
    for client in clients:
        client.close()
    return total(Path(f"{keep}.{dump + 1}")) / case.requests


def run(cases: list[Case], enforced: str, checkout: Path, keep: Path | None, flow: Flow) -> dict[str, float]:
    """Measure the cases with one proxy, and one more for those over TLS; return the instructions per request,
    by case.
    """
    found: dict[str, float] = {}
    for tls in (False, True):
        chosen = [case for case in cases if case.tls == tls]
        if not chosen:
            continue
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            folder = Path(name)
            with fake_broker(folder, join=False) as port:
                out = folder / "callgrind.out"
                with counted(setting(enforced, port, folder, tls), checkout, out) as (proxy_port, pid):
                    for dump, case in enumerate(chosen):
                        found[case.name] = measure(
                            case, proxy_port, pid, folder=folder, keep=out, dump=dump, flow=flow
                        )
                        if keep is not None:
                            shutil.copy(f"{out}.{dump + 1}", keep / f"{enforced}-{case.name}.callgrind")
    return found


def report(found: dict[str, dict[str, float]], cases: list[Case]) -> list[str]:
    """Format the counts as Markdown, by what is enforced and by case."""
    lines = [f"| enforced | {' | '.join(case.name for case in cases)} |", f"|---{'|---:' * len(cases)}|"]
    for enforced, counts in found.items():
        lines.append(f"| {enforced} | {' | '.join(f'{counts[case.name]:,.0f}' for case in cases)} |")
    return lines


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        choices=[case.name for case in CASES],
        help="measure this case; repeatable; default: all",
    )
    parser.add_argument(
        "--enforced",
        action="append",
        default=[],
        choices=ENFORCED,
        help="what the proxy enforces; repeatable; default: each of them",
    )
    parser.add_argument(
        "--checkout",
        type=Path,
        default=Path.cwd(),
        help="folder of the sources, and compiled files, to measure; default: the current one",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep callgrind's files here, for callgrind_annotate; default: delete them",
    )
    parser.add_argument(
        "--in-flight",
        type=int,
        default=1,
        metavar="N",
        help="requests in flight of each connection (default: %(default)s)",
    )
    parser.add_argument(
        "--connections", type=int, default=1, metavar="N", help="connections (default: %(default)s)"
    )
    options = parser.parse_args()
    cases = [case for case in CASES if not options.case or case.name in options.case]
    if shutil.which("callgrind_control") is None:
        sys.exit("bench.instructions: callgrind_control is not installed; install the package valgrind")
    flow = Flow(options.connections, options.in_flight)
    found = {
        enforced: run(cases, enforced, options.checkout.resolve(), options.keep, flow)
        for enforced in options.enforced or ENFORCED
    }
    print("\n".join(report(found, cases)))


if __name__ == "__main__":
    main()
