"""TLS handshakes that one address leaves unfinished, at a real proxy; the clients use OpenSSL."""

import socket
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from statistics import median

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.server.listener.accept.handshake_turns import OLD_SECONDS, UNFINISHED_AT_MOST
from tests.support.kafka.raw_client import HOST, RawClient
from tests.support.messages.requests import metadata
from tests.support.process.certificates import Authority
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all addresses of 127.0.0.0/8"),
]
ATTACKER = "127.0.0.2"
NEIGHBOUR = "127.0.0.3"
HALF_OPEN = 200
LATE = 0.25
"""Seconds by which a busy machine may delay a client."""


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, authority: Authority, run_proxy: ProxyRunner) -> ProxyProcess:
    own = authority.sign("handshakes")
    tls = {"certificate": own.certificate, "key": own.key}
    # No handshake ends because it takes too long.
    return run_proxy(kafka.bootstrap, listener={"tls": tls}, settings={"limits": {"handshake_seconds": 60}})


class HalfOpen:
    """A client that has sent its first hello, and waits."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self.socket = socket.create_connection((HOST, port), 60, source_address=(ATTACKER, 0))
        self._step()
        self.socket.setblocking(False)
        self.begun = False
        """Whether the proxy has responded to the hello."""
        self.ended = False

    def _step(self) -> None:
        with suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        self.socket.sendall(self._outgoing.read())

    def look(self) -> None:
        """Take what has arrived."""
        if self.ended:
            return
        with suppress(BlockingIOError):
            try:
                some = self.socket.recv(1 << 16)
            except ConnectionError:
                some = b""
            self._incoming.write(some)
            self.begun = self.begun or len(some) > 0
            self.ended = not some

    def go_on(self) -> None:
        """Send the second part of the handshake, which costs the proxy most."""
        self._step()


@contextmanager
def half_open(port: int, context: ssl.SSLContext) -> Iterator[list[HalfOpen]]:
    with ExitStack() as stack:
        clients = [HalfOpen(port, context) for _ in range(HALF_OPEN)]
        for client in clients:
            stack.callback(client.socket.close)
        yield clients


def test_unfinished_handshakes_of_one_address(proxy: ProxyProcess, authority: Authority) -> None:
    port = proxy.bootstrap_port
    context = ssl.create_default_context(cafile=authority.ca)
    times: list[float] = []

    def works(client: RawClient) -> bool:
        return bool(client.ask(metadata(["handshakes"])).topics[0].error_code != ErrorCode.none)

    def neighbour_connects() -> None:
        before = time.monotonic()
        with RawClient(port, tls=context, source=NEIGHBOUR) as client:
            times.append(time.monotonic() - before)
            assert works(client)

    with ExitStack() as stack:
        finished = [stack.enter_context(RawClient(port, tls=context, source=ATTACKER)) for _ in range(5)]
        assert all(works(client) for client in finished)
        for _ in range(10):
            neighbour_connects()
        usual = median(times)
        times.clear()
        began = time.monotonic()
        attackers = stack.enter_context(half_open(port, context))

        def unfinished() -> list[HalfOpen]:
            for client in attackers:
                client.look()
            begun = [client for client in attackers if client.begun]
            for client in begun:
                client.look()  # for each that has begun since, another one has ended
            return [client for client in begun if not client.ended]

        def the_first_have_ended() -> bool:
            neighbour_connects()
            assert len(unfinished()) <= UNFINISHED_AT_MOST
            return sum(client.ended for client in attackers) >= UNFINISHED_AT_MOST

        wait_until(the_first_have_ended, "the end of the oldest handshakes")
        assert time.monotonic() - began >= OLD_SECONDS
        ended = [place for place, client in enumerate(attackers) if client.ended]
        assert max(ended) < len(ended) + UNFINISHED_AT_MOST  # the others are younger
        # All that are unfinished go on at the same moment.
        for client in unfinished():
            with suppress(ConnectionError):  # it has just ended
                client.go_on()
        neighbour_connects()
        assert max(times) < 5 * usual + LATE
        assert median(times) < 2 * usual + LATE / 10
        assert all(works(client) for client in finished)
    assert proxy.log_lines("its source started")
