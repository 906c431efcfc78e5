"""`python -m tests.interop.muted.run`: what clients do on a connection that the proxy has muted for long.

A quota of 5,000 bytes per second and one large message mute each client's connection for 10, 30 and 120 s.
The clients have their default settings; each has a listener of its own, so that the proxy's counters are its.
All run at the same time, on a real Kafka. `--announce` is quotas.max_throttle_seconds: the longest wait that
a response announces. With `--native`, they connect to the broker itself, which has the same quotas; the
connection to the bootstrap server counts, too.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from proxy.demo.children import Children
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.kafka import jars
from proxy.demo.kafka.tools import JVM_FLAGS
from proxy.demo.ports import free_port_range
from tests.interop.muted.client import LIBRARIES, SMALL_BYTES, number_of, value
from tests.support.kafka.admin_requests import alter
from tests.support.kafka.clients import Confluent
from tests.support.kafka.topics import make_topic, read_log
from tests.support.messages.requests import values
from tests.support.process.proxy_process import ProxyProcess

JAVA: Final = "Java"
ROLES: Final = ("produce", "consume")
LIMIT: Final = 5_000
KAFKAS_WINDOW_SECONDS: Final = 11
SMALL: Final = 20
POLL_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 200.0
"""Beyond the mute: delivery.timeout.ms is 120 s, librdkafka's 300 s."""
ESTABLISHED: Final = "01"
"""In /proc/net/tcp."""
HERE: Final = Path(__file__).parent


@dataclass(eq=False)
class Case:
    """One client, one mute, and what became of it."""

    library: str
    role: str
    seconds: int
    port: int
    lines: list[tuple[float, str]] = field(default_factory=list)
    native: bool = False
    process: "subprocess.Popen[str] | None" = None
    connected: set[str] = field(default_factory=set)
    drops: list[str] = field(default_factory=list)
    """When connections to the broker were closed, in seconds after the mute began."""

    @property
    def name(self) -> str:
        return f"{self.library.lower()}-{self.role}-{self.seconds}"

    @property
    def large(self) -> int:
        """What the quota admits at once, and the mute."""
        return LIMIT * (self.seconds + (KAFKAS_WINDOW_SECONDS if self.native else 1))

    @property
    def broker_port(self) -> int:
        """The port of the broker, whose node id is 1."""
        return self.port if self.native else self.port + 2

    @property
    def muted_at(self) -> float | None:
        """When the large message had passed."""
        return next((at for at, line in self.lines if line in ("acked 0", "got 0")), None)

    def numbers(self, word: str) -> list[int]:
        return [int(line.split()[1]) for _, line in self.lines if line.startswith(word + " ")]

    @property
    def done(self) -> bool:
        return any(line == "done" for _, line in self.lines)

    def listener(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "bootstrap_port": self.port,
            "broker_port_base": self.port + 1,
            "broker_port_count": 2,
        }

    def command(self) -> list[str]:
        given = (self.role, f"127.0.0.1:{self.port}", self.name, self.name, str(self.large), str(SMALL))
        if self.library == JAVA:
            flags = (*JVM_FLAGS, "-Xmx96m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            source = str(HERE / "MutedClient.java")
            return jars.ensure().command(source, *given, jvm_flags=flags)
        return [sys.executable, "-m", "tests.interop.muted.client", self.library, *given]


def follow(case: Case, process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        case.lines.append((time.monotonic(), line.strip()))


def prepare(kafka: EmbeddedKafka, case: Case) -> None:
    """Create the case's topic; fill it, for a consumer, with batches of one message."""
    make_topic(kafka, case.name)
    if case.role == "consume":
        producer = Confluent().producer(kafka.bootstrap)
        for number in range(SMALL + 1):
            producer.produce(case.name, value(number, case.large if number == 0 else SMALL_BYTES))
            producer.flush()


def sockets(pid: int, port: int) -> set[str]:
    """The process's established connections to the port, by their inodes (Linux)."""
    own = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            own.add(os.readlink(each).removeprefix("socket:[").removesuffix("]"))
    found = set()
    # A JVM has IPv6 sockets.
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if (
                fields[9] in own
                and fields[3] == ESTABLISHED
                and int(fields[2].rpartition(":")[2], 16) == port
            ):
                found.add(fields[9])
    return found


def watch(cases: Sequence[Case]) -> None:
    """Note when connections to the broker end, until every client is done."""
    ends = time.monotonic() + max(case.seconds for case in cases) + PATIENCE_SECONDS
    while time.monotonic() < ends and not all(case.done for case in cases):
        time.sleep(POLL_SECONDS)
        for case in cases:
            if case.done or case.process is None or case.process.poll() is not None:
                continue
            there, muted_at = sockets(case.process.pid, case.broker_port), case.muted_at
            if muted_at is not None:
                gone = len(case.connected - there)
                case.drops += [f"{time.monotonic() - muted_at:.0f} s"] * gone
            case.connected = there


def rows(kafka: EmbeddedKafka, cases: Sequence[Case]) -> Iterator[tuple[str, ...]]:
    for case in cases:
        in_log = Counter(
            number_of(each) for records in read_log(kafka, case.name) for each in values(records)
        )
        arrived = in_log if case.role == "produce" else Counter(case.numbers("got"))
        errors = {line.split()[2] for _, line in case.lines if line.startswith("failed ")}
        failed = case.numbers("failed")
        lost = set(range(SMALL + 1)) - set(arrived)
        doubled = sum(count - 1 for count in arrived.values() if count > 1)
        last = max((at for at, line in case.lines if line.split()[0] in ("acked", "got")), default=0.0)
        muted_at = case.muted_at
        yield (
            case.library,
            case.role,
            str(case.seconds),
            ", ".join(case.drops) or "no",
            f"{len(lost)}" + (f" ({len(failed)} reported: {', '.join(sorted(errors))})" if failed else ""),
            str(doubled),
            "" if case.role == "produce" else str(sum(line == "assigned" for _, line in case.lines)),
            "?" if muted_at is None else f"{last - muted_at:.0f} s",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, nargs="+", default=[10, 30, 120])
    parser.add_argument("--announce", type=float, default=10.0)
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--library", nargs="+", default=[JAVA, *LIBRARIES])
    chosen = parser.parse_args()
    cases = [
        Case(library, role, seconds, 0, native=chosen.native)
        for library in chosen.library
        for role in ROLES
        for seconds in chosen.seconds
    ]
    first = free_port_range(3 * len(cases))
    for place, case in enumerate(cases):
        case.port = first + 3 * place
    quotas = [
        {"entity": {"client-id": case.name}, "producer_byte_rate": LIMIT, "consumer_byte_rate": LIMIT}
        for case in cases
    ]
    shown = Table(box=box.ASCII2)
    for column in (
        "client",
        "role",
        "muted for",
        "dropped after",
        "lost",
        "doubled",
        "assignments",
        "last message",
    ):
        shown.add_column(column)
    with ExitStack() as stack:
        kafka = stack.enter_context(EmbeddedKafka())
        if chosen.native:
            for case in cases:
                case.port = kafka.port(1)
                rates = {"producer_byte_rate": LIMIT, "consumer_byte_rate": LIMIT}
                alter(kafka.port(1), {"client-id": case.name}, **rates)
        else:
            stack.enter_context(
                ProxyProcess(
                    kafka.folder / "proxy",
                    kafka.bootstrap,
                    quotas,
                    settings={"quotas": {"max_throttle_seconds": chosen.announce, "store": "none"}},
                    more_listeners=[
                        {**case.listener(), "upstream": {"bootstrap": [kafka.bootstrap]}} for case in cases
                    ],
                )
            )
        children = Children()
        stack.callback(children.kill_all)
        for case in cases:
            prepare(kafka, case)
        for case in cases:
            case.process = children.spawn(
                case.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            threading.Thread(target=follow, args=(case, case.process), daemon=True).start()
        watch(cases)
        for row in rows(kafka, cases):
            shown.add_row(*row)
    Console(width=200 if not os.isatty(1) else None).print(shown)


if __name__ == "__main__":
    main()
