"""A port with TLS on real sockets: which clients are served, and why the others are not."""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.verdict import Verdict
from proxy.relay.close_reasons import CLIENT_CLOSED, CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.relay.relay import Relay
from proxy.security.alerts import ServerConnection
from proxy.security.settings import Tls
from proxy.security.tls import server_tls
from proxy.server.connection.connection import Connection
from proxy.server.listener.accept.acceptor import Acceptor
from proxy.server.listener.accept.admission import UnlimitedAdmission
from proxy.server.listener.accept.handshake_steps import Steps
from proxy.server.listener.accept.handshake_turns import HandshakeTurns
from proxy.server.listener.accept.tls_opener import TlsOpener
from proxy.tasks import Tasks
from tests.support.messages.kio_messages import framed, request_frame, request_type
from tests.support.process.certificates import Authority
from tests.support.process.tls_records import DATA, HostileClient, RenegotiatingClient
from tests.support.server.relays import unlimited_relay

OWN: int = 49
ALERT = 21
REQUEST = request_frame(request_type(OWN, 1)(entries=(), validate_only=True), 7)
LOCAL_RESPONSE = framed(b"a response")


class Gateway:
    """Admits everybody, and answers what is intercepted; there is no broker."""

    def __init__(self, wait: float | None = 0.0, closes: bool = False, bucket: Bucket | None = None) -> None:
        self.inside = 0
        self.failures: list[str] = []
        self.ended_with: list[str] = []
        self.certificates: list[bytes | None] = []
        self.requests = 0
        self.over = asyncio.Event()
        self._wait = wait
        self._closes = closes
        self._bucket = bucket

    def admit(self, node_id: int | None, address: str, peer: str) -> Verdict | None:
        assert (node_id, address) == (3, "127.0.0.1")
        assert peer.startswith("127.0.0.1:")
        if self._wait is None:
            self.over.set()
            return None
        self.inside += 1
        return Verdict(self._wait, bucket=self._bucket, closes=self._closes)

    def throttle_ended(self, address: str) -> None:
        self.inside -= 1
        self.ended_with.append("throttled")
        self.over.set()

    def handshake_failed(self, address: str, peer: str, why: str) -> None:
        self.inside -= 1
        self.failures.append(why)
        self.over.set()

    def opened(self, connection: Connection, address: str) -> Relay:
        assert connection.admitted
        assert connection.tls is not None
        self.certificates.append(connection.tls.getpeercert(binary_form=True))
        return unlimited_relay(address, OWN)

    def start_answering(self, connection: Connection, request: Intercepted) -> None:
        self.requests += 1
        respond = connection.handled(request).answer
        asyncio.get_running_loop().call_soon(respond, LOCAL_RESPONSE)

    def failed(self, connection: Connection, error: RelayError) -> None:
        pass

    room = UnlimitedAdmission()

    def enter(self, address: str, peer: str) -> bool:
        assert address == "127.0.0.1"
        assert peer.startswith("127.0.0.1:")
        return True

    def accept_failed(self, error: OSError) -> None:
        pass

    def accepts_later(self) -> None:
        pass

    def ended(self, connection: Connection, reason: str) -> None:
        self.inside -= 1
        self.ended_with.append(reason)
        self.over.set()

    def left(self, connection: Connection) -> None:
        pass


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def run(
    loop: asyncio.AbstractEventLoop,
    gateway: Gateway,
    authority: Authority,
    client: Callable[[int], Any],
    seconds: float = 10.0,
) -> Any:
    """What a blocking client, which gets the port, returns."""
    signed = authority.sign("proxy")
    settings = Tls(
        certificate=signed.certificate, key=signed.key, client_ca=authority.ca, client_auth="requested"
    )

    async def serve() -> Any:
        tasks = Tasks()
        with socket.create_server(("127.0.0.1", 0)) as bound:
            bound.setblocking(False)
            opener = TlsOpener(
                gateway,
                server_tls(settings, ()),
                node_id=3,
                make=lambda origin: cast("Any", Connection(cast("Any", gateway), 3, loop, True, origin)),
                seconds=seconds,
                turns=HandshakeTurns(loop),
            )
            server = Acceptor(bound, gateway, opener, tasks)
            server.start()
            port = bound.getsockname()[1]
            async with asyncio.timeout(30):
                done = await loop.run_in_executor(None, client, port)
                await gateway.over.wait()
            server.close()
        await tasks.cancel()
        return done

    return loop.run_until_complete(serve())


def ask(authority: Authority, port: int, certificate: str | None = None) -> bytes:
    context = ssl.create_default_context(cafile=authority.ca)
    if certificate is not None:
        signed = authority.sign(certificate, certificate)
        context.load_cert_chain(signed.certificate, signed.key)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        client.sendall(REQUEST)
        return client.recv(100)


@pytest.mark.parametrize("certificate", [None, "alice"])
def test_a_client_is_served(
    loop: asyncio.AbstractEventLoop, authority: Authority, certificate: str | None
) -> None:
    gateway = Gateway()
    assert run(loop, gateway, authority, lambda port: ask(authority, port, certificate)) == LOCAL_RESPONSE
    assert gateway.ended_with == ["client_closed"]
    assert [shown is None for shown in gateway.certificates] == [certificate is None]
    assert (gateway.failures, gateway.inside) == ([], 0)


def test_a_client_that_closes_is_not_logged(
    loop: asyncio.AbstractEventLoop, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        run(loop, Gateway(), authority, lambda port: ask(authority, port))
    assert caplog.messages == []


@pytest.mark.parametrize("what", ["key updates", "small records"])
def test_a_flood_of_records(
    loop: asyncio.AbstractEventLoop, authority: Authority, tmp_path: Path, what: str
) -> None:
    """KeyUpdates end the connection; small records are read in turns, and then the client is answered."""
    hostile = HostileClient(authority.ca, tmp_path)

    def attack(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            hostile.connect(plain)
            with contextlib.suppress(ConnectionError):
                if what == "key updates":
                    plain.sendall(b"".join(hostile.key_update() for _ in range(300)))
                else:
                    many = REQUEST * 20
                    records = [hostile.record(many[at : at + 1]) for at in range(len(many))]
                    plain.sendall(b"".join(records))
                found = b""
                while found.count(LOCAL_RESPONSE) < 20 and (some := plain.recv(1 << 16)):
                    hostile.received.write(some)
                    with contextlib.suppress(ssl.SSLWantReadError):
                        while chunk := hostile.ssl.read(1 << 16):
                            found += chunk
                return found
        return b""

    gateway = Gateway()
    found = run(loop, gateway, authority, attack)
    if what == "key updates":
        assert (found, gateway.ended_with) == (b"", [CLIENT_PROTOCOL_ERROR])
    else:
        assert (found, gateway.ended_with) == (LOCAL_RESPONSE * 20, [CLIENT_CLOSED])


def record_types(data: bytes) -> list[int]:
    """The types of the TLS records that have arrived."""
    types = []
    while data:
        types.append(data[0])
        data = data[5 + int.from_bytes(data[3:5], "big") :]
    return types


@pytest.mark.parametrize("count", [10, 300])
def test_renegotiations(
    loop: asyncio.AbstractEventLoop, authority: Authority, tmp_path: Path, count: int
) -> None:
    """Each gets an alert and no handshake. The client is served, unless there are many."""
    hostile = RenegotiatingClient(authority.ca, tmp_path)

    def attack(port: int) -> list[int]:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            hostile.connect(plain)
            plain.sendall(b"".join(hostile.renegotiation() for _ in range(count)) + hostile.record(REQUEST))
            received = b""
            with contextlib.suppress(ConnectionError):
                while DATA not in record_types(received) and (some := plain.recv(1 << 16)):
                    received += some
            return record_types(received)

    gateway = Gateway()
    types = run(loop, gateway, authority, attack)
    served = [CLIENT_CLOSED] if count == 10 else [CLIENT_PROTOCOL_ERROR]
    assert (gateway.ended_with, gateway.requests) == (served, 1 if count == 10 else 0)
    if count == 10:
        assert types == [ALERT] * count + [DATA]
    else:
        assert len(types) < 100
        assert set(types) <= {ALERT}


@pytest.mark.parametrize("together", [1, 300])
@pytest.mark.parametrize("end", ["close_notify", "end of the socket"])
def test_requests_of_a_client_that_ends_at_once(
    loop: asyncio.AbstractEventLoop, authority: Authority, tmp_path: Path, together: int, end: str
) -> None:
    """The proxy reads all of them, as it does without TLS."""
    hostile = HostileClient(authority.ca, tmp_path)

    def client(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            hostile.connect(plain)
            records = [hostile.record(REQUEST * together) for _ in range(300 // together)]
            if end == "close_notify":
                records.append(hostile.record(b"\x01\0", ALERT))
            plain.sendall(b"".join(records))
            plain.shutdown(socket.SHUT_WR)
            while plain.recv(1 << 16):
                pass

    gateway = Gateway()
    run(loop, gateway, authority, client)
    assert (gateway.requests, gateway.ended_with) == (300, [CLIENT_CLOSED])


class CountedSteps:
    """Counts the steps of handshakes, and the turns for them."""

    def __init__(self, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """`number` handshakes are made."""
        self.first = 0
        """Steps that were not taken by HandshakeTurns itself: those that begin a handshake."""
        self.all_awaited = True
        """Whether each of these was awaited."""
        self.later: list[int] = []
        """The steps in each turn that HandshakeTurns gave."""
        self.all_begun = threading.Event()
        """Set when all handshakes have begun."""
        awaited = 0
        begun = 0
        gives = False
        turn, give, begin = HandshakeTurns.turn, HandshakeTurns._give_one, Steps.first_taken
        read = ServerConnection._read_handshake

        async def counted_turn(turns: HandshakeTurns, address: str) -> None:
            nonlocal awaited
            await turn(turns, address)
            awaited += 1

        def counted_give(turns: HandshakeTurns) -> None:
            nonlocal gives
            gives = True
            self.later.append(0)
            give(turns)
            gives = False

        def counted_begin(
            steps: Steps, protocol: asyncio.BufferedProtocol, transport: asyncio.Transport
        ) -> None:
            nonlocal begun
            begin(steps, protocol, transport)
            begun += 1
            if begun == number:
                self.all_begun.set()

        def counted_read(connection: ServerConnection) -> None:
            before = connection.outgoing.pending
            try:
                read(connection)
            finally:
                if connection.outgoing.pending == before:
                    pass
                elif gives:
                    self.later[-1] += 1
                else:
                    self.first += 1
                    self.all_awaited &= self.first <= awaited

        monkeypatch.setattr(HandshakeTurns, "turn", counted_turn)
        monkeypatch.setattr(HandshakeTurns, "_give_one", counted_give)
        monkeypatch.setattr(Steps, "first_taken", counted_begin)
        monkeypatch.setattr(ServerConnection, "_read_handshake", counted_read)


def second_hellos(authority: Authority, port: int, number: int, all_begun: threading.Event) -> int:
    """Begin handshakes, continue all of them at the same moment, and return how many are served."""
    context = ssl.create_default_context(cafile=authority.ca)
    with contextlib.ExitStack() as ends:
        clients = []
        for _ in range(number):
            plain = ends.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
            plain.sendall(outgoing.read())
            clients.append((plain, client, incoming, outgoing))
        for plain, client, incoming, _ in clients:
            incoming.write(plain.recv(1 << 16))  # a HelloRetryRequest
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
        assert all_begun.wait(20)
        for plain, _, _, outgoing in clients:
            plain.sendall(outgoing.read())
        served = 0
        for plain, client, incoming, outgoing in clients:
            incoming.write(plain.recv(1 << 16))
            client.do_handshake()
            client.write(REQUEST)
            plain.sendall(outgoing.read())
            plain.shutdown(socket.SHUT_WR)
            served += bool(plain.recv(1 << 16))
        return served


def test_handshakes_that_continue_at_once(
    loop: asyncio.AbstractEventLoop, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn takes one step of them."""
    number = 40
    steps = CountedSteps(number, monkeypatch)
    gateway = Gateway()

    def client(port: int) -> int:
        return second_hellos(authority, port, number, steps.all_begun)

    assert run(loop, gateway, authority, client) == number
    assert (steps.first, sum(steps.later), max(steps.later)) == (number, 2 * number, 1)
    assert steps.all_awaited
    assert gateway.failures == []


def send(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        if data:
            client.sendall(data)
        else:
            client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            return client.recv(100)
        return b""


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (
            REQUEST,
            "security.protocol",
        ),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x00\x05hello", "handshake"),
    ],
)
def test_a_client_without_tls(
    loop: asyncio.AbstractEventLoop, authority: Authority, data: bytes, says: str
) -> None:
    gateway = Gateway()
    run(loop, gateway, authority, lambda port: send(port, data))
    assert [why for why in gateway.failures if says in why], gateway.failures
    assert gateway.inside == 0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_certificate_of_an_unknown_authority_gets_an_alert(
    loop: asyncio.AbstractEventLoop, authority: Authority, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """In TLS 1.3 the client takes the handshake for done, and has sent more by the time it is rejected."""
    stranger = Authority(tmp_path, "strangers").sign("stranger")

    def connect(port: int) -> str:
        context = ssl.create_default_context(cafile=authority.ca)
        context.load_cert_chain(stranger.certificate, stranger.key)
        context.maximum_version = version
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            try:
                with context.wrap_socket(plain, server_hostname="localhost") as client:
                    client.sendall(REQUEST)
                    client.recv(100)
            except ssl.SSLError as error:
                return error.reason
        return "no error"

    gateway = Gateway()
    assert run(loop, gateway, authority, connect) == "TLSV1_ALERT_UNKNOWN_CA"
    [why] = gateway.failures
    assert why.endswith("CERTIFICATE_VERIFY_FAILED")


def test_a_malformed_hello_gets_an_alert(loop: asyncio.AbstractEventLoop, authority: Authority) -> None:
    alert = run(loop, Gateway(), authority, lambda port: send(port, b"\x16\x03\x01\x00\x05hello"))
    assert (alert[:1], len(alert)) == (b"\x15", 7)


def test_a_hello_in_very_many_records(loop: asyncio.AbstractEventLoop, authority: Authority) -> None:
    """The failure has its reason, and the log no traceback: anybody can cause thousands of them."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(received, sent, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    hello = sent.read()[5:]
    records = b"".join(b"\x16\x03\x01\0\x01" + hello[at : at + 1] for at in range(len(hello)))
    gateway = Gateway()
    run(loop, gateway, authority, lambda port: send(port, records))
    assert gateway.failures == ["the TLS handshake failed: more than 128 records in a handshake"]


def test_a_port_check_is_no_failed_handshake(loop: asyncio.AbstractEventLoop, authority: Authority) -> None:
    gateway = Gateway()
    assert run(loop, gateway, authority, lambda port: send(port, b"")) == b""
    assert gateway.failures == [""]


@pytest.mark.parametrize("start", [b"", b"\x16\x03\x01"])
def test_a_handshake_that_takes_too_long(
    loop: asyncio.AbstractEventLoop, authority: Authority, start: bytes
) -> None:
    def wait(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(start)
            with contextlib.suppress(ConnectionError):
                return client.recv(100)
            return b""

    gateway = Gateway()
    run(loop, gateway, authority, wait, seconds=0.2)
    assert len(gateway.failures) == 1
    assert "handshake" in gateway.failures[0]


def test_a_client_that_is_not_admitted(loop: asyncio.AbstractEventLoop, authority: Authority) -> None:
    gateway = Gateway(wait=None)
    assert run(loop, gateway, authority, lambda port: send(port, REQUEST)) == b""
    assert gateway.failures == []


def test_a_client_that_is_throttled(loop: asyncio.AbstractEventLoop, authority: Authority) -> None:
    gateway = Gateway(wait=0.3)
    started = loop.time()
    assert run(loop, gateway, authority, lambda port: ask(authority, port)) == LOCAL_RESPONSE
    # uvloop's clock has whole milliseconds.
    assert round((loop.time() - started) * 1000) >= 300


def test_a_client_that_is_throttled_is_served_when_its_limit_is_removed(
    loop: asyncio.AbstractEventLoop, authority: Authority
) -> None:
    bucket = Bucket(quota="connection_creation_rate", limit=1.0, rule=RateRule(burst_seconds=1.0), now=0.0)
    gateway = Gateway(wait=1000.0, bucket=bucket)

    def client(port: int) -> bytes:
        bucket.configure(UNLIMITED, bucket.rule, 0.0)
        return ask(authority, port)

    assert run(loop, gateway, authority, client) == LOCAL_RESPONSE


def test_a_client_over_the_rate_is_closed_unserved(
    loop: asyncio.AbstractEventLoop, authority: Authority
) -> None:
    gateway = Gateway(wait=0.2, closes=True)
    started = loop.time()
    assert run(loop, gateway, authority, lambda port: send(port, REQUEST)) == b""
    assert round((loop.time() - started) * 1000) >= 200
    assert (gateway.inside, gateway.failures, gateway.ended_with) == (0, [], ["throttled"])
