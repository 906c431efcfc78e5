"""TlsServer: a listening port with TLS. A client counts from the start, not from a finished handshake on.

Its first byte tells whether it speaks TLS at all, so that the log can say what is wrong with one that does
not.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final, Protocol

from proxy.security.alerts import Handshake
from proxy.security.tls import TlsFiles
from proxy.tasks import Tasks
from proxy.wire.not_kafka import looks_like

log = logging.getLogger(__name__)
TLS_HANDSHAKE_FAILED: Final = "tls_handshake_failed"
HANDSHAKE: Final = 0x16
"""The type of a TLS record that a hello is in."""
PAUSE_SECONDS: Final = 0.5
"""How long no connection is taken where the process has no file descriptor left for one."""


class TlsAdmission(Protocol):
    """What a TLS server asks of its gateway."""

    def admit(self, node_id: int | None, address: str, peer: str) -> float | None:
        """A client has connected: in how many seconds it may be served; None: it is one too many."""

    def failed(self, address: str, peer: str, why: str) -> None:
        """The handshake of a client that was admitted has failed; an empty `why`: it has just gone."""


class TlsServer:
    """Takes connections until close()."""

    def __init__(
        self,
        door: TlsAdmission,
        tls: TlsFiles,
        bound: socket.socket,
        seconds: float,
        tasks: Tasks,
    ) -> None:
        """`bound` listens; `seconds`: how long a handshake may take."""
        self._tls_admission: Final = door
        self._tls: Final = tls
        self._bound: Final = bound
        self._seconds: Final = seconds
        self._tasks: Final = tasks
        self._loop: Final = asyncio.get_running_loop()
        self._accepting: asyncio.Task[None] | None = None

    def start(self, node_id: int | None, make: Callable[[], asyncio.Protocol]) -> None:
        """Serve the broker with this node id, or the bootstrap port; `make` makes a connection's protocol."""
        self._accepting = self._tasks.start(self._accept(node_id, make))

    def close(self) -> None:
        """Take no more connections."""
        if self._accepting is not None:
            self._accepting.cancel()
        self._bound.close()

    async def _accept(self, node_id: int | None, make: Callable[[], asyncio.Protocol]) -> None:
        while True:
            try:
                client, address = await self._loop.sock_accept(self._bound)
            except OSError as error:
                log.error("no connection can be taken: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self._tasks.start(self._greet(node_id, make, client, address))

    async def _greet(
        self,
        node_id: int | None,
        make: Callable[[], asyncio.Protocol],
        client: socket.socket,
        address: tuple[str, int],
    ) -> None:
        host, peer = str(address[0]), f"{address[0]}:{address[1]}"
        wait = self._tls_admission.admit(node_id, host, peer)
        if wait is None:
            client.close()
            return
        served = False
        why = ""
        try:
            if wait > 0.0:
                await asyncio.sleep(wait)
            why = await self._shake_hands(client, make)
            served = not why
        except TimeoutError:
            why = f"no TLS handshake within {self._seconds:g} s"
        except ssl.SSLError as error:
            why = f"the TLS handshake failed: {error.reason or error}"
        except _Gone:
            pass
        except OSError as error:
            why = f"the TLS handshake failed: {error}"
        finally:
            if not served:
                client.close()
                self._tls_admission.failed(host, peer, why)

    async def _shake_hands(self, client: socket.socket, make: Callable[[], asyncio.Protocol]) -> str:
        """Make the connection; or say why there is none."""
        async with asyncio.timeout(self._seconds):
            head = await self._first_bytes(client)
        if not head:
            raise _Gone
        if head[0] != HANDSHAKE:
            hint = looks_like(head) or "the client's security.protocol has to be SSL or SASL_SSL"
            return f"it does not speak TLS, as this port does: {hint}"
        handshake = Handshake(client)
        try:
            await self._loop.connect_accepted_socket(
                make, client, ssl=self._tls.context, ssl_handshake_timeout=self._seconds
            )
        except ssl.SSLError:
            await handshake.send_alert()
            raise
        finally:
            handshake.close()
        return ""

    async def _first_bytes(self, client: socket.socket) -> bytes:
        """What the client has sent first; it stays where it is."""
        client.setblocking(False)
        readable: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(client, _set, readable)
        try:
            await readable
        finally:
            self._loop.remove_reader(client)
        try:
            return client.recv(5, socket.MSG_PEEK)
        except ConnectionError:
            return b""


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Gone(Exception):
    """The client has closed without a word, as what only looks whether the port is open."""
