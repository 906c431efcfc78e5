"""neighbour: what a tenant within its quota notices of faults that have nothing to do with it.

The tenant produces 200 bytes every 5 ms to broker 1. Calm phases alternate with phases of a fault. A second
tenant does the same at broker 1 itself, and shows what part of a latency is the broker's or the machine's.
"""

import multiprocessing
import os
import resource
import signal
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from bench.attacks.neighbour import Latencies, Neighbour, latencies, measure_all
from bench.peers.tls import Certificate, make_certificate
from bench.soak.process import cpu_seconds, open_files
from bench.soak.scenario import Outcome, Run, Scenario
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.ports import free_ports
from tests.support.kafka.clients import Confluent
from tests.support.kafka.raw_client import HOST, RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.requests import api_versions, batch, fetch, produce
from tests.support.process.proxy_process import STOP_SECONDS, ProxyProcess
from tests.support.waiting import wait_until

TOPIC: Final = "soak-neighbour"
SLOW_TOPIC: Final = "soak-slow"
STORE: Final = "__soak_neighbour"
SECONDS: Final = 5.0
SHORT_SECONDS: Final = 0.5
"""The length of a phase; the second is that of a short run."""
WARM_UP_SECONDS: Final = 1.0
"""A fault begins to have its effect, or ends to, before a phase is measured."""
ROUNDS: Final = 3
MOST: Final = 1.5
"""How many times as long as in calm phases the p99 may be during a fault."""
VICTIM: Final = 2
"""The broker that fails. Broker 1 is the only controller, and leads the tenants' topic."""
DEPTH: Final = 5000
"""Levels of the nested file."""
CALM_SECONDS: Final = 1.0
CALM_CPU: Final = 0.2
"""A broker that uses less of a core for so long has started."""


@dataclass(frozen=True)
class Scene:
    """What a fault can reach."""

    kafka: EmbeddedKafka
    proxy: ProxyProcess
    tls: int
    """The bootstrap port of the listener in front of the broker that closes its TLS connections."""
    certificate: Certificate
    phase_seconds: float

    @property
    def pid(self) -> int:
        """The proxy's process."""
        return self.proxy.process.pid


@contextmanager
def repeating(action: Callable[..., None], *arguments: object, every: float) -> Iterator[None]:
    """Call again and again while the block runs, in a process of its own: in this one, it would delay the
    tenants.
    """
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_repeat, args=(action, arguments, every), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _repeat(action: Callable[..., None], arguments: Sequence[object], every: float) -> None:
    while True:
        with suppress(OSError, EOFError):
            action(*arguments)
        time.sleep(every)


@contextmanager
def limited(pid: int, which: int, soft: int) -> Iterator[None]:
    """Lower a soft limit of a process while the block runs."""
    before, hard = resource.prlimit(pid, which)
    resource.prlimit(pid, which, (soft, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, which, (before, hard))


def until_calm(pid: int) -> None:
    """Wait until a process uses little CPU time."""

    def calm() -> bool:
        before = cpu_seconds(pid)
        time.sleep(CALM_SECONDS)
        return cpu_seconds(pid) - before < CALM_CPU * CALM_SECONDS

    wait_until(calm, f"process {pid} to be calm")


# What clients and brokers do meanwhile


def visit(port: int) -> None:
    """Connect, and wait until the proxy closes the connection, for at most a second."""
    with socket.create_connection((HOST, port), timeout=1.0) as client:
        client.sendall(_api_versions())
        while client.recv(1 << 16):
            pass


def leave(port: int) -> None:
    """Connect, send a request, and close without waiting for the response."""
    with socket.create_connection((HOST, port), timeout=1.0) as client:
        client.sendall(_api_versions())


def crowd(port: int, kept: list[socket.socket]) -> None:
    """Open a connection, and keep it."""
    client = socket.create_connection((HOST, port), timeout=1.0)
    kept.append(client)
    client.sendall(_api_versions())


def unreadable(bootstrap: str) -> None:
    """Append a record to the quota topic that nobody can read."""
    producer = Confluent().producer(bootstrap, linger_ms=0)
    while True:
        producer.produce(STORE, b"\xff{", b'{"kind":"client-quota","entity":{"user":"\xff"}}')
        producer.flush(1.0)
        time.sleep(0.05)


def closing_broker(port: int, certificate: Certificate) -> None:
    """Accept TLS connections, and close each when its first request has come. The proxy's own request, which
    is of version 0, gets a response.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    with closing(socket.create_server((HOST, port))) as server:
        while True:
            with suppress(OSError), context.wrap_socket(server.accept()[0], server_side=True) as client:
                request = client.recv(1 << 16)
                if request[6:8] == b"\0\0":
                    # error 0, and one API: Metadata with the versions 0 to 12
                    client.sendall(struct.pack(">i4shihhh", 16, request[8:12], 0, 1, 3, 0, 12))


def nested(file: str, good: bytes) -> None:
    """Replace the proxy's file with one that is nested too deeply."""
    written = Path(file).with_suffix(".nested")
    written.write_bytes(good[:-1] + b',"x":' + b"[" * DEPTH + b"]" * DEPTH + b"}")
    written.replace(file)


def _api_versions() -> bytes:
    from tests.support.messages.kio_messages import request_frame

    return request_frame(api_versions(), 1, "visitor")


# The faults


def no_fault(scene: Scene) -> AbstractContextManager[None]:
    """Nothing happens: what the machine alone does."""
    return nullcontext()


def unreadable_records(scene: Scene) -> AbstractContextManager[None]:
    """Records that cannot be read arrive in the quota topic."""
    return repeating(unreadable, f"{HOST}:{scene.kafka.port(1)}", every=1.0)


@contextmanager
def broker_hangs(scene: Scene) -> Iterator[None]:
    """A broker hangs; 50 clients a second come to it, and leave before they get a response."""
    os.kill(scene.kafka.pid(VICTIM), signal.SIGSTOP)
    try:
        with repeating(leave, scene.proxy.broker_port(VICTIM), every=0.02):
            yield
    finally:
        os.kill(scene.kafka.pid(VICTIM), signal.SIGCONT)
        until_calm(scene.kafka.pid(VICTIM))


@contextmanager
def broker_is_gone(scene: Scene) -> Iterator[None]:
    """A broker is killed; 100 clients a second try to reach it."""
    scene.kafka.kill(VICTIM)
    try:
        with repeating(visit, scene.proxy.broker_port(VICTIM), every=0.01):
            yield
    finally:
        scene.kafka.start(VICTIM)
        until_calm(scene.kafka.pid(VICTIM))


@contextmanager
def broker_closes_tls(scene: Scene) -> Iterator[None]:
    """A broker closes ten TLS connections a second."""
    with repeating(visit, scene.tls, every=0.1):
        yield


@contextmanager
def full_disk(scene: Scene) -> Iterator[None]:
    """No file of the proxy can grow: neither its usage events nor its log."""
    with limited(scene.pid, resource.RLIMIT_FSIZE, 0):
        yield


@contextmanager
def no_descriptors(scene: Scene) -> Iterator[None]:
    """The proxy has no free descriptor; ten clients a second come and stay."""
    with (
        limited(scene.pid, resource.RLIMIT_NOFILE, open_files(scene.pid) + 10),
        repeating(crowd, scene.proxy.broker_port(1), [], every=0.1),
    ):
        yield


@contextmanager
def nested_file(scene: Scene) -> Iterator[None]:
    """The file is replaced five times a second with one that is nested too deeply."""
    good = scene.proxy.config_file.read_bytes()
    try:
        with repeating(nested, str(scene.proxy.config_file), good, every=0.2):
            yield
    finally:
        scene.proxy.config_file.write_bytes(good)


@contextmanager
def shutdown(scene: Scene) -> Iterator[None]:
    """The proxy drains, because one response takes long. At the end, it is started again."""
    wait = timedelta(seconds=scene.phase_seconds + WARM_UP_SECONDS + 1.0)
    with RawClient(scene.proxy.broker_port(1)) as slow:
        slow.send(replace(fetch(SLOW_TOPIC), max_wait=wait))
        # Its response comes after that of the fetch.
        slow.send(produce(SLOW_TOPIC + "-written", batch([b"x"])))
        wait_until(lambda: scene.proxy.metric("quota_proxy_requests_total", api="Fetch") > 0, "the fetch")
        scene.proxy.terminate()
        yield
    scene.proxy.process.wait(STOP_SECONDS)
    scene.proxy.start().wait_ready()


FAULTS: Final[Sequence[Callable[[Scene], AbstractContextManager[None]]]] = (
    no_fault,
    unreadable_records,
    broker_closes_tls,
    full_disk,
    no_descriptors,
    nested_file,
    shutdown,
    broker_hangs,
    broker_is_gone,
)


@dataclass
class Measured:
    """The latencies of the tenants, in seconds: at the proxy, and at the broker itself."""

    calm: list[list[float]] = field(default_factory=lambda: [[], []])
    faulty: list[list[float]] = field(default_factory=lambda: [[], []])

    def ratio(self, place: int) -> float:
        """The p99 during the fault, divided by that of the calm phases."""
        return latencies(self.faulty[place]).p99 / latencies(self.calm[place]).p99

    @property
    def costs_too_much(self) -> bool:
        """Whether the fault costs the tenant behind the proxy more than MOST, and more than the broker or the
        machine explains.
        """
        return self.ratio(0) > MOST * max(self.ratio(1), 1.0)

    def figures(self) -> Mapping[str, object]:
        """The figures in milliseconds."""
        of: Mapping[str, tuple[Latencies, Latencies]] = {
            where: (latencies(self.calm[place]), latencies(self.faulty[place]))
            for place, where in enumerate(("proxy", "broker"))
        }
        return {
            where: {
                "calm_p99": round(calm.p99, 2),
                "p99": round(faulty.p99, 2),
                "ratio": round(faulty.p99 / calm.p99, 2),
                "p50": round(faulty.median, 2),
                "longest": round(faulty.longest, 1),
                "requests": faulty.count,
            }
            for where, (calm, faulty) in of.items()
        }


def measure(fault: Callable[[Scene], AbstractContextManager[None]], scene: Scene, rounds: int) -> Measured:
    """Alternate calm phases with phases of the fault."""
    found = Measured()
    ports = (scene.proxy.broker_port(1), scene.kafka.port(1))
    with ExitStack() as stack:
        tenants = [stack.enter_context(Neighbour(port, TOPIC)) for port in ports]
        for _ in range(rounds):
            measure_all(tenants, WARM_UP_SECONDS)
            _add(found.calm, measure_all(tenants, scene.phase_seconds))
            with fault(scene):
                measure_all(tenants, WARM_UP_SECONDS)
                _add(found.faulty, measure_all(tenants, scene.phase_seconds))
    return found


def _add(to: list[list[float]], more: list[list[float]]) -> None:
    for found, new in zip(to, more, strict=True):
        found += new


def run(run: Run) -> Outcome:
    """Cause each fault, and compare the tenants' latencies."""
    outcome = Outcome()
    for topic in (TOPIC, SLOW_TOPIC, SLOW_TOPIC + "-written"):
        make_topic(run.kafka, topic, on=[(1,)])
    certificate = make_certificate(run.folder)
    (broker, bootstrap) = free_ports(2)
    settings: dict[str, Any] = {
        "quotas": {"store": {"topic": STORE}},
        "usage": {"interval_seconds": 1, "files": {"folder": str(run.folder / "usage")}},
    }
    tls = {
        "name": "tls",
        "bootstrap_port": bootstrap,
        "broker_port_base": 0,
        "principal": {"from": "sasl"},  # so that the proxy requests no metadata there
        "upstream": {
            "bootstrap": [f"localhost:{broker}"],
            "tls": {"ca": str(certificate.certificate)},
        },
    }
    quotas = [{"entity": {"client-id": "neighbour"}, "producer_byte_rate": 1e9}]
    proxy = ProxyProcess(
        run.folder / "neighbour", run.kafka.bootstrap, quotas, settings=settings, more_listeners=[tls]
    )
    rounds = run.amount(ROUNDS, 1)
    with repeating(closing_broker, broker, certificate, every=0.0), proxy:
        seconds = SHORT_SECONDS if run.short else SECONDS
        scene = Scene(run.kafka, proxy, bootstrap, certificate, seconds)
        for fault in FAULTS:
            found = measure(fault, scene, rounds)
            outcome.figures[fault.__name__] = found.figures()
            outcome.check(
                run.short or not found.costs_too_much,
                f"{fault.__name__}: the p99 is {found.ratio(0):.2f} times as long as before",
            )
        outcome.check(not proxy.log_lines("Traceback"), "the proxy's log has errors")
    return outcome


SCENARIO: Final = Scenario(
    "neighbour", "faults, and what a tenant notices who has nothing to do with them", run, 2
)
