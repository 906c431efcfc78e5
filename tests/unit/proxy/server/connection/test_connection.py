"""Connection on real sockets: it serves late where it has to wait, and delivers local responses."""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.relay.budgets.list_turns import LIST_BYTES, ListTurns
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.intercepted import Intercepted
from proxy.relay.relay import Relay
from proxy.relay.requests.unsupported_version import unsupported_api_versions
from proxy.server.connection.connection import Connection
from proxy.server.connection.origin import Origin
from proxy.server.connection.pauses import (
    BROKER_FULL,
    BY_BROKER,
    BY_CLIENT,
    BY_CONNECTING,
    BY_CONNECTION_RATE,
    BY_LIST,
    BY_QUOTA,
    CONNECTING,
    MUTED,
    RESPONSES_UNREAD,
    UNSERVED,
)
from proxy.wire.api_keys import API_VERSIONS
from proxy.wire.apis.registry import WITHOUT_INTERCEPTED
from tests.support.messages.exchanges import api_versions, opaque, produce
from tests.support.messages.kio_messages import Ports, framed, request_frame, request_type
from tests.support.server.connections import new_connection
from tests.support.server.relays import unlimited_relay
from tests.support.stories.playbook import EVERYONE, drive, engine, new_relay

OWN: int = 49
REQUEST = request_frame(request_type(OWN, 1)(entries=(), validate_only=True), 7)
LOCAL_RESPONSE = framed(b"a response")


class ConnectionHost:
    """Takes connections, and answers what is intercepted; there is no broker."""

    def __init__(
        self,
        wait: float = 0.0,
        answers_in: float = 0.0,
        closes: bool = False,
        bucket: Bucket | None = None,
    ) -> None:
        self.ended_with: list[str] = []
        self.intercepted: list[tuple[Connection, Intercepted]] = []
        self.asked = threading.Event()
        self.opened_at = self.asked_at = 0.0
        self.over = asyncio.Event()
        self._wait = wait
        self._bucket = bucket
        self._closes = closes
        self._answers_in = answers_in

    def opened(self, connection: Connection, address: str) -> Relay:
        self.connection = connection
        self.opened_at = asyncio.get_running_loop().time()
        if self._closes:
            connection.close_at(self.opened_at + self._wait)
        elif self._wait:
            connection.serve_at(self.opened_at + self._wait, self._bucket)
        return unlimited_relay(address, OWN)

    def start_answering(self, connection: Connection, request: Intercepted) -> None:
        self.intercepted.append((connection, request))
        self.asked_at = asyncio.get_running_loop().time()
        self.asked.set()
        respond = connection.handled(request).answer
        asyncio.get_running_loop().call_later(self._answers_in, respond, LOCAL_RESPONSE)

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        raise AssertionError("no broker is asked")

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        raise AssertionError("no broker is asked")

    def failed(self, connection: Connection, error: RelayError) -> None:
        pass

    def ended(self, connection: Connection, reason: str) -> None:
        self.ended_with.append(reason)
        self.over.set()

    def left(self, connection: Connection) -> None:
        """The loop may be closed before."""


def run(
    loop: asyncio.AbstractEventLoop,
    owner: ConnectionHost,
    client: Callable[[int], Any],
    origin: Origin | None = None,
) -> Any:
    """What a blocking client, which gets the port, returns."""

    async def serve() -> Any:
        server = await loop.create_server(lambda: new_connection(owner, loop, origin), "127.0.0.1", 0)
        async with server:
            async with asyncio.timeout(30):
                done = await loop.run_in_executor(None, client, server.sockets[0].getsockname()[1])
                # What the client's end has brought about is still on its way.
                await owner.over.wait()
            return done

    return loop.run_until_complete(serve())


def waited_ms(owner: ConnectionHost) -> int:
    """Milliseconds from the connection's opening to its first request, by the loop's clock.

    A timer is due by that clock, which uvloop reads once a turn and in whole milliseconds: by any other clock
    the same wait can be up to a millisecond shorter.
    """
    return round((owner.asked_at - owner.opened_at) * 1000)


def ask(port: int, *, shut_down: bool = False) -> bytes:
    """Send a request at once; the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(REQUEST)
        if shut_down:
            client.shutdown(socket.SHUT_WR)
        return client.recv(100)


def test_what_the_proxy_responses(loop: asyncio.AbstractEventLoop) -> None:
    owner = ConnectionHost()
    assert run(loop, owner, ask) == LOCAL_RESPONSE
    [(_, request)] = owner.intercepted
    assert request.header.api_key == OWN
    assert request.frame == REQUEST[4:]
    assert owner.ended_with == ["client_closed"]


@pytest.mark.parametrize("origin", [None, Origin("192.0.2.1", 5, stated=True)])
def test_the_address_is_the_origin_s_or_the_socket_s(
    loop: asyncio.AbstractEventLoop, origin: Origin | None
) -> None:
    owner = ConnectionHost()
    assert run(loop, owner, ask, origin) == LOCAL_RESPONSE
    [(connection, request)] = owner.intercepted
    expected = "127.0.0.1" if origin is None else "192.0.2.1"
    assert (connection.address, request.exchange.client.address) == (expected, expected)
    assert connection.peer.startswith(f"{expected}:")
    assert connection.address_stated == (origin is not None)


def test_a_response_before_an_error_still_leaves(loop: asyncio.AbstractEventLoop) -> None:
    """As that which says why a login is rejected."""
    owner = ConnectionHost()

    def client(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(api_versions(7, 99) + framed(b""))
            with client.makefile("rb") as responses:
                return responses.read()

    api = WITHOUT_INTERCEPTED.read[API_VERSIONS]
    assert api is not None
    assert run(loop, owner, client) == unsupported_api_versions(7, 0, api.newest)
    assert owner.ended_with == ["client_protocol_error"]


def test_a_client_that_leaves_responses_unread_is_not_read_from(loop: asyncio.AbstractEventLoop) -> None:
    """It would fill the memory with what the proxy answers itself."""
    owner = ConnectionHost()

    async def flood() -> list[bool]:
        server = await loop.create_server(lambda: new_connection(owner, loop), "127.0.0.1", 0)
        async with server, asyncio.timeout(30):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            writer.write(REQUEST)
            assert await reader.readexactly(len(LOCAL_RESPONSE)) == LOCAL_RESPONSE
            [(connection, _)] = owner.intercepted
            client = connection.session.client
            assert client is not None
            reading = [client.is_reading()]
            connection.pause_writing()
            reading.append(client.is_reading())
            writer.write(REQUEST)
            assert await reader.readexactly(len(LOCAL_RESPONSE)) == LOCAL_RESPONSE
            reading.append(client.is_reading())
            connection.resume_writing()
            reading.append(client.is_reading())
            writer.close()
            await owner.over.wait()
        return reading

    assert loop.run_until_complete(flood()) == [True, True, False, True]


def test_a_connection_that_waits_is_served_then(loop: asyncio.AbstractEventLoop) -> None:
    owner = ConnectionHost(wait=0.4)
    assert run(loop, owner, ask) == LOCAL_RESPONSE
    assert waited_ms(owner) >= 400
    assert owner.ended_with == ["client_closed"]


def test_one_that_waits_is_served_when_its_limit_is_removed(loop: asyncio.AbstractEventLoop) -> None:
    bucket = Bucket(quota="connection_creation_rate", limit=1.0, rule=RateRule(burst_seconds=1.0), now=0.0)
    owner = ConnectionHost(wait=1000, bucket=bucket)

    def client(port: int) -> bytes:
        bucket.configure(UNLIMITED, bucket.rule, 0.0)
        return ask(port)

    assert run(loop, owner, client) == LOCAL_RESPONSE
    # It has waited for the handshake and for silence from then on, and not from the end of its first wait.
    assert owner.connection.opened_at <= owner.asked_at


def test_one_that_sends_no_more_is_served_too(loop: asyncio.AbstractEventLoop) -> None:
    owner = ConnectionHost(wait=0.3)
    assert run(loop, owner, lambda port: ask(port, shut_down=True)) == LOCAL_RESPONSE
    assert waited_ms(owner) >= 300


def test_what_it_sends_meanwhile_stays_where_it_is(loop: asyncio.AbstractEventLoop) -> None:
    """A connection that waits costs no memory: what does not fit into the sockets' buffers is not taken."""
    owner = ConnectionHost(wait=1000)

    def flood(port: int) -> int:
        sent = 0
        with socket.create_connection(("127.0.0.1", port), timeout=0.5) as client, suppress(TimeoutError):
            while sent < 100 << 20:
                sent += client.send(bytes(1 << 16))
        loop.call_soon_threadsafe(lambda: owner.connection.serve_at(loop.time()))
        return sent

    assert run(loop, owner, flood) < 32 << 20


def test_one_that_goes_while_it_waits_is_over(loop: asyncio.AbstractEventLoop) -> None:
    owner = ConnectionHost(wait=0.2)
    run(loop, owner, lambda port: socket.create_connection(("127.0.0.1", port)).close())
    assert owner.ended_with == ["client_closed"]


def test_one_over_the_rate_is_closed_unserved(loop: asyncio.AbstractEventLoop) -> None:
    owner = ConnectionHost(wait=0.2, closes=True)
    started = loop.time()

    def client(port: int) -> bytes:
        with suppress(ConnectionResetError):
            return ask(port)
        return b""

    assert run(loop, owner, client) == b""
    assert round((loop.time() - started) * 1000) >= 200
    assert owner.intercepted == []
    assert owner.ended_with == ["connection_rate"]


def test_a_response_to_one_that_has_gone_is_dropped(loop: asyncio.AbstractEventLoop) -> None:
    owner = ConnectionHost(answers_in=0.2)

    def leave(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(REQUEST)
            # The end is a reset, which the proxy learns of when it writes.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            assert owner.asked.wait(20)

    run(loop, owner, leave)
    assert owner.ended_with == ["client_closed"]


def test_why_a_client_is_not_read_from(loop: asyncio.AbstractEventLoop) -> None:
    """Of several reasons, the one that explains the others."""
    connection = Connection(ConnectionHost(), 1, loop)  # type: ignore[arg-type]
    story = new_relay({EVERYONE: {"producer_byte_rate": 1000.0}})
    connection.session.relay = story.relay
    pauses = connection.session.pauses
    assert connection.pause_reason == ""
    pauses.change(None, MUTED, True)
    assert connection.pause_reason == "", "it waits for a login, or while the proxy responds itself"
    found = []
    for why in (RESPONSES_UNREAD, BROKER_FULL, CONNECTING):
        pauses.change(None, why, True)
        found.append(connection.pause_reason)
    story.relay.receive_from_client(produce(1, size=3500), 1000.0)
    found.append(connection.pause_reason)
    connection.session.relay = waiting_for_a_turn()
    found.append(connection.pause_reason)
    pauses.change(None, UNSERVED, True)
    found.append(connection.pause_reason)
    assert found == [BY_CLIENT, BY_BROKER, BY_CONNECTING, BY_QUOTA, BY_LIST, BY_CONNECTION_RATE]


def waiting_for_a_turn() -> Relay:
    """A relay with a list that waits while another one is in flight."""
    turns = ListTurns(1)
    for _ in range(2):
        driver = drive(engine({}), Ports(), Traffic(), list_turns=turns)
        driver.receive_from_client(opaque(1, body=bytes(LIST_BYTES)), 1000.0)
    return driver.relay


async def test_a_client_that_has_not_sent_the_rest_of_a_request_does_not_wait_for_the_broker() -> None:
    """The broker cannot respond to a part of a request, so the connection may be idle."""
    connection = new_connection(ConnectionHost(), asyncio.get_running_loop())
    relay = connection.session.relay = new_relay().relay
    request = produce(1, size=3 << 20)
    relay.receive_from_client(request[: 2 << 20], 1000.0)
    assert not connection.waits_for_broker
    relay.receive_from_client(request[2 << 20 :], 1000.0)
    assert connection.waits_for_broker
