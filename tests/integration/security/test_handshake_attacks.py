"""TLS handshakes that one address continues at the same moment, at a real proxy: all are served, and so is a
neighbour. test_tls_opener.py counts the steps of a turn. The clients use OpenSSL.
"""

import select
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
from tests.support.kafka.raw_client import HOST, RawClient
from tests.support.messages.requests import metadata
from tests.support.process.certificates import Authority
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all addresses of 127.0.0.0/8"),
]
ATTACKER = "127.0.0.2"
NEIGHBOUR = "127.0.0.3"
HALF_OPEN = 200
ATTACKS = 5
"""So many, for a busy machine may stop this process until all of an attack are served."""
LATE = 0.25
"""Seconds by which a busy machine may delay a client, apart from pauses of the machine."""


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, authority: Authority, run_proxy: ProxyRunner) -> ProxyProcess:
    own = authority.sign("handshakes")
    tls = {"certificate": own.certificate, "key": own.key}
    return run_proxy(kafka.bootstrap, listener={"tls": tls})


class HalfOpen:
    """A client that has sent its first hello, and waits."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self.socket = socket.create_connection((HOST, port), 60, source_address=(ATTACKER, 0))
        self.finished = False
        self._step()
        self._send()

    def take(self) -> None:
        """Take what the proxy sends next."""
        self._incoming.write(self.socket.recv(1 << 16))
        self._step()

    @property
    def is_answered(self) -> bool:
        """Whether the proxy has sent something that has not been taken."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def _step(self) -> None:
        with suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
            self.finished = True

    def _send(self) -> None:
        self.socket.sendall(self._outgoing.read())

    def go_on(self) -> None:
        """Send the second hello, which costs the proxy most."""
        self._send()


@contextmanager
def half_open(port: int, context: ssl.SSLContext) -> Iterator[list[HalfOpen]]:
    with ExitStack() as stack:
        clients = []
        for _ in range(HALF_OPEN):
            clients.append(HalfOpen(port, context))
            stack.callback(clients[-1].socket.close)
        yield clients


def test_handshakes_that_continue_at_the_same_moment(proxy: ProxyProcess, authority: Authority) -> None:
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

    with Pauses() as pauses, ExitStack() as stack:
        served = stack.enter_context(RawClient(port, tls=context, source=ATTACKER))
        assert works(served)
        for _ in range(10):
            neighbour_connects()
        usual = median(times)
        times.clear()
        for _ in range(ATTACKS):
            with half_open(port, context) as attackers:
                for client in attackers:
                    client.take()  # a HelloRetryRequest
                neighbour_connects()
                for client in attackers:
                    client.go_on()
                # The proxy would need 0.1 s for all of them, and takes the neighbour's steps in between.
                neighbour_connects()
                answered = sum(client.is_answered for client in attackers)
                for _ in range(9):
                    neighbour_connects()
                for client in attackers:
                    client.take()
                assert all(client.finished for client in attackers)
            assert works(served)
            if answered < HALF_OPEN:
                break
        assert answered < HALF_OPEN, "the neighbour came after all of them"
        assert max(times) < 5 * usual + LATE + pauses.seconds
