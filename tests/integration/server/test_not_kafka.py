"""Bytes that are no Kafka request close their own connection, with one line in the log, and no other."""

import socket
import ssl
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.server.logs.log_limit import LINES, WINDOW_SECONDS
from tests.support.kafka.raw_client import RawClient
from tests.support.messages.kio_messages import framed, request_frame
from tests.support.messages.requests import api_versions, batch, metadata, produce
from tests.support.process.proxy_process import HOST, ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
LIMIT = 2_000_000
REQUEST = request_frame(metadata([]))
NO_SUCH_API = 30_000
UNANSWERED = "the broker closed its connection while a response was due"
HELLO = "this looks like a TLS hello: on this port the client's security.protocol has to be PLAINTEXT"
NOT_KAFKA = {
    "HTTP": (b"GET /metrics HTTP/1.1\r\nHost: kafka\r\n\r\n", "this looks like HTTP on a Kafka port"),
    "a frame over the limit": (struct.pack(">i", LIMIT + 1), f"{LIMIT + 1} bytes"),
    "a negative length": (b"\xff\xff\xff\xf0" + bytes(20), "-16"),
    "a frame too short for a header": (framed(b"\x00\x00\x00"), ""),
    "a negative API key": (framed(b"\xff\xfe" + bytes(20)), "api_key -2"),
    "a client id without an end": (framed(b"\x00\x03\x00\x00" + bytes(4) + b"\x7f\xff" + bytes(9)), ""),
    "a request that breaks off": (framed(request_frame(produce("t", batch([b"x"])))[4:40]), UNANSWERED),
    "an API that no broker has": (framed(struct.pack(">hhih", NO_SUCH_API, 0, 1, 0)), UNANSWERED),
}


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    return run_proxy(kafka.bootstrap, settings={"limits": {"max_frame_bytes": LIMIT}})


@pytest.fixture(scope="module")
def impatient(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    return run_proxy(kafka.bootstrap, settings={"limits": {"handshake_seconds": 1, "idle_seconds": 1}})


@pytest.fixture(autouse=True)
def others(proxy: ProxyProcess) -> Iterator[None]:
    """Another client, whose connection is not affected."""
    with RawClient(proxy.broker_port(1)) as client:
        assert client.ask(api_versions()).error_code == ErrorCode.none
        yield
        assert client.ask(api_versions()).error_code == ErrorCode.none


@pytest.fixture(autouse=True)
def room_in_the_log(request: pytest.FixtureRequest) -> None:
    """The log has a line for the test's connection: a listener logs few a second for each cause."""
    for name in {"proxy", "impatient"} & set(request.fixturenames):
        proxy: ProxyProcess = request.getfixturevalue(name)
        wait_until(lambda proxy=proxy: _recently_logged(proxy) < LINES, "room in the log")


def _recently_logged(proxy: ProxyProcess) -> int:
    """The closed connections that were logged since the start of a window that may still be open."""
    since = datetime.now(UTC) - timedelta(seconds=WINDOW_SECONDS + 1)
    times = [line.split()[0] for line in proxy.log_lines("connection closed")]
    return sum(datetime.fromisoformat(time) > since for time in times)


class CheckLog(Protocol):
    """Check that the log has one line about a connection, with the peer, the port and the reason."""

    def __call__(self, proxy: ProxyProcess, peer: tuple[str, int], why: str) -> None: ...


@pytest.fixture
def check_log() -> CheckLog:
    """Lines of earlier tests do not count: their clients may have had the same port."""
    begun = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]

    def check(proxy: ProxyProcess, peer: tuple[str, int], why: str) -> None:
        def lines(text: str) -> list[str]:
            return [line for line in proxy.log_lines(text) if line >= begun]

        who = rf"{peer[0]}:{peer[1]}\b.* -> broker 1"
        wait_until(lambda: lines(who), f"a line in the log that matches {who}")
        [line] = lines(rf"{peer[0]}:{peer[1]}\b")
        assert " WARNING " in line
        assert why in line

    return check


@pytest.mark.parametrize("what", NOT_KAFKA)
def test_not_kafka(what: str, proxy: ProxyProcess, check_log: CheckLog) -> None:
    data, why = NOT_KAFKA[what]
    with RawClient(proxy.broker_port(1)) as client:
        client.send_bytes(data)
        assert client.ended()
        check_log(proxy, client.address, why)


def test_not_kafka_after_a_request(proxy: ProxyProcess, check_log: CheckLog) -> None:
    """The request before it may get a response or not; the connection is closed."""
    with RawClient(proxy.broker_port(1)) as client:
        client.send_bytes(REQUEST + framed(b"\xff\xfe" + bytes(20)))
        assert client.ended()
        check_log(proxy, client.address, "api_key -2")


def test_a_tls_client(proxy: ProxyProcess, check_log: CheckLog) -> None:
    context = ssl.create_default_context()
    with socket.create_connection((HOST, proxy.broker_port(1)), timeout=30) as plain:
        peer = plain.getsockname()
        with pytest.raises(OSError), context.wrap_socket(plain, server_hostname="kafka"):  # noqa: PT011
            pass
    check_log(proxy, peer, HELLO)


BEFORE = pytest.mark.parametrize("before", [b"", REQUEST], ids=["at once", "after a request"])


def _send_half(client: RawClient, before: bytes) -> None:
    client.send_bytes(before + REQUEST[:-1])
    if before:
        client.receive_frame()


@BEFORE
def test_half_a_frame(before: bytes, proxy: ProxyProcess, check_log: CheckLog) -> None:
    with RawClient(proxy.broker_port(1)) as client:
        _send_half(client, before)
        client.shut_down()
        assert client.ended()
        check_log(proxy, client.address, "in the middle of a request")


@BEFORE
def test_half_a_frame_and_a_reset(before: bytes, proxy: ProxyProcess, check_log: CheckLog) -> None:
    with RawClient(proxy.broker_port(1)) as client:
        passed = proxy.metric("quota_proxy_bytes_total", direction="in")
        _send_half(client, before)
        passed += len(before + REQUEST) - 1
        wait_until(
            lambda: proxy.metric("quota_proxy_bytes_total", direction="in") == passed, "half a frame here"
        )
        peer = client.address
        client.reset()
    check_log(proxy, peer, "in the middle of a request")


@BEFORE
def test_half_a_frame_and_silence(before: bytes, impatient: ProxyProcess, check_log: CheckLog) -> None:
    with RawClient(impatient.broker_port(1)) as client:
        _send_half(client, before)
        assert client.ended()
        check_log(impatient, client.address, "in the middle of a request")


def test_half_a_frame_byte_by_byte(impatient: ProxyProcess, check_log: CheckLog) -> None:
    """A client that sends without a pause has no more time for its first request than others."""
    with RawClient(impatient.broker_port(1)) as client:
        client.send_bytes(struct.pack(">i", LIMIT))

        def ended() -> bool:
            try:
                client.send_bytes(b"\0")
            except ConnectionError:
                return True
            return False

        wait_until(ended, "the end of a slow client")
        check_log(impatient, client.address, "in the middle of a request")


def test_half_a_large_frame(kafka: EmbeddedKafka, proxy: ProxyProcess, check_log: CheckLog) -> None:
    """The proxy has forwarded the beginning of the frame to the broker, which never gets the rest."""
    large = request_frame(produce("t", batch([bytes(LIMIT - 1000)])))
    with RawClient(proxy.broker_port(1)) as client:
        client.send_bytes(large[: LIMIT // 2])
        client.shut_down()
        assert client.ended()
        check_log(proxy, client.address, "in the middle of a request")


def test_a_client_that_says_nothing(impatient: ProxyProcess) -> None:
    """A port scanner or a health check: the log has no line."""
    for leaves in (False, True):
        with RawClient(impatient.broker_port(1)) as client:
            peer = rf"{client.address[0]}:{client.address[1]}\b"
            before = impatient.log_lines(peer)
            if leaves:
                client.shut_down()
            assert client.ended()
        assert impatient.log_lines(peer) == before
