"""TlsOpener: opens the accepted connections of a port with TLS.

A client counts against the connection limits before its handshake, which is the expensive part. The opener
looks at the client's first byte before the handshake, so that the log can tell a client without TLS what to
change.
"""

import asyncio
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable
from typing import Final, Protocol

import uvloop
from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

from proxy.quota.measure.connection_wait import ConnectionWait
from proxy.quota.verdict import Verdict
from proxy.security.alerts import Handshake
from proxy.security.tls import TlsFiles
from proxy.security.tls_reader import RECORD_AT_MOST, record_size
from proxy.server.connection.origin import Origin
from proxy.server.listener.accept.handshake_steps import Steps
from proxy.server.listener.accept.handshake_turns import HandshakeTurns
from proxy.server.listener.accept.readable import until_readable
from proxy.wire.not_kafka import looks_like

TLS_HANDSHAKE_FAILED: Final = "tls_handshake_failed"
HANDSHAKE: Final = 0x16
"""The content type of the TLS record that has the client's hello."""


class TlsAdmission(Protocol):
    """Decides about clients before their TLS handshake."""

    def admit(self, node_id: int | None, address: str, peer: str) -> Verdict | None:
        """Charge a new client: whether and when it is served. None closes its connection at once, and stops
        counting it.
        """

    def throttle_ended(self, address: str) -> None:
        """Stop counting a client whose verdict was to close its connection after the wait."""

    def handshake_failed(self, address: str, peer: str, why: str) -> None:
        """Stop counting an admitted client; `why` is empty if it only closed the connection."""


class TlsOpener:
    """Opens the connections of one port. Fulfils Opener."""

    def __init__(
        self,
        admission: TlsAdmission,
        tls: TlsFiles,
        *,
        node_id: int | None,
        make: Callable[[Origin], asyncio.Protocol],
        seconds: float,
        turns: HandshakeTurns,
    ) -> None:
        """`node_id` is the broker's whose port it is; None for the bootstrap port. `make` makes a
        connection's protocol; `seconds` is the timeout of a handshake.
        """
        self._turns: Final = turns
        self._admission: Final = admission
        self._tls: Final = tls
        self._node_id: Final = node_id
        self._make: Final = make
        self._seconds: Final = seconds
        self._loop: Final = asyncio.get_running_loop()

    async def open(self, client: socket.socket, origin: Origin) -> None:
        address, peer = origin.address, origin.peer
        verdict = self._admission.admit(self._node_id, address, peer)
        if verdict is None:
            client.close()
            return
        if verdict.closes:
            await self._close_after(verdict.throttle_seconds, client, address)
            return
        served = False
        why = ""
        try:
            if verdict.throttle_seconds > 0.0:
                await self._wait(verdict)
            why = await self._handshake(client, origin)
            served = not why
        except TimeoutError:
            why = f"no TLS handshake within {self._seconds:g} s"
        except ssl.SSLError as error:
            # An error that is not OpenSSL's has no reason.
            why = f"the TLS handshake failed: {getattr(error, 'reason', None) or error}"
        except _ClientClosed:
            pass
        except OSError as error:
            why = f"the TLS handshake failed: {error}"
        finally:
            if not served:
                client.close()
                self._admission.handshake_failed(address, peer, why)

    async def _wait(self, verdict: Verdict) -> None:
        now = self._loop.time()
        wait = ConnectionWait(now + verdict.throttle_seconds, now, verdict.bucket)
        over = False
        while not over:
            await asyncio.sleep(wait.wake_at - self._loop.time())
            over = wait.review(self._loop.time())

    async def _close_after(self, seconds: float, client: socket.socket, address: str) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            client.close()
            self._admission.throttle_ended(address)

    async def _handshake(self, client: socket.socket, origin: Origin) -> str:
        """Make the connection, or return why there is none."""
        async with asyncio.timeout(self._seconds):
            hello = await self._first_record(client)
        if hello[0] != HANDSHAKE:
            hint = looks_like(hello) or "set the client's security.protocol to SSL or SASL_SSL"
            return f"it does not speak TLS, which this port requires: {hint}"
        await self._turns.turn(origin.address)
        await self._secure(client, origin, hello)
        return ""

    async def _first_record(self, client: socket.socket) -> bytes:
        """Read what the client sends, until the first TLS record is whole or the first byte shows that there
        is none. Raises _ClientClosed if the client closes the connection before.
        """
        client.setblocking(False)
        received = b""
        while not received or (received[0] == HANDSHAKE and record_size(received, 0) == 0):
            await until_readable(self._loop, client)
            try:
                some = client.recv(RECORD_AT_MOST)
            except ConnectionError:
                some = b""
            if not some:
                raise _ClientClosed
            received += some
        return received

    async def _secure(self, client: socket.socket, origin: Origin, hello: bytes) -> None:
        """Do what connect_accepted_socket(ssl=...) does, one step in each turn. The event loop does not show
        the protocol that it makes there.
        """
        steps = Steps(self._turns, origin.address)
        handshake = Handshake(client, hello, steps)
        try:
            done = self._loop.create_future()
            of_loop = SSLProtocol if isinstance(self._loop, uvloop.Loop) else sslproto.SSLProtocol
            protocol = of_loop(
                self._loop,
                self._make(origin),
                self._tls.context,
                done,
                server_side=True,
                ssl_handshake_timeout=self._seconds,  # type: ignore[arg-type]
            )
            transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, client)
            steps.first_taken(protocol, transport)
            try:
                await done
            except BaseException:
                transport.close()
                raise
        except ssl.SSLError:
            await handshake.send_alert()
            raise
        finally:
            steps.end()
            handshake.close()


class _ClientClosed(Exception):
    """The client closed the connection without a hello, as a port check does."""
