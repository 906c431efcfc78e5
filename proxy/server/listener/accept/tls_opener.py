"""TlsOpener: opens the accepted connections of a port with TLS.

A client counts against the connection limits before its handshake, which is the expensive part. The opener
looks at the client's first byte before the handshake, so that the log can tell a client without TLS what to
change.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from proxy.quota.verdict import Verdict
from proxy.security.alerts import Handshake
from proxy.security.tls import TlsFiles
from proxy.server.connection.origin import Origin
from proxy.server.listener.accept.handshake_turns import HandshakeTurns
from proxy.server.listener.accept.readable import until_readable
from proxy.wire.not_kafka import looks_like

TLS_HANDSHAKE_FAILED: Final = "tls_handshake_failed"
HANDSHAKE: Final = 0x16
"""The content type of the TLS record that has the client's hello."""
RECORD_HEADER_BYTES: Final = 5
"""The bytes of a TLS record before its content."""


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
                await asyncio.sleep(verdict.throttle_seconds)
            why = await self._handshake(client, origin)
            served = not why
        except TimeoutError:
            why = f"no TLS handshake within {self._seconds:g} s"
        except ssl.SSLError as error:
            why = f"the TLS handshake failed: {error.reason or error}"
        except _ClientClosed:
            pass
        except OSError as error:
            why = f"the TLS handshake failed: {error}"
        finally:
            if not served:
                client.close()
                self._admission.handshake_failed(address, peer, why)

    async def _close_after(self, seconds: float, client: socket.socket, address: str) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            client.close()
            self._admission.throttle_ended(address)

    async def _handshake(self, client: socket.socket, origin: Origin) -> str:
        """Make the connection, or return why there is none."""
        async with asyncio.timeout(self._seconds):
            head = await self._first_bytes(client)
        if not head:
            raise _ClientClosed
        if head[0] != HANDSHAKE:
            hint = looks_like(head) or "set the client's security.protocol to SSL or SASL_SSL"
            return f"it does not speak TLS, which this port requires: {hint}"
        async with self._turns.turn(origin.address, client):
            await self._secure(client, origin)
        return ""

    async def _secure(self, client: socket.socket, origin: Origin) -> None:
        handshake = Handshake(client)
        try:
            await self._loop.connect_accepted_socket(
                partial(self._make, origin),
                client,
                ssl=self._tls.context,
                ssl_handshake_timeout=self._seconds,
            )
        except ssl.SSLError:
            await handshake.send_alert()
            raise
        finally:
            handshake.close()

    async def _first_bytes(self, client: socket.socket) -> bytes:
        """Return the client's first bytes and leave them in the socket; empty if it closed the connection."""
        client.setblocking(False)
        await until_readable(self._loop, client)
        try:
            return client.recv(RECORD_HEADER_BYTES, socket.MSG_PEEK)
        except ConnectionError:
            return b""


class _ClientClosed(Exception):
    """The client closed the connection without sending a byte, as a port check does."""
