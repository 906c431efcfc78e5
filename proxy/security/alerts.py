"""What OpenSSL has to say to a client whose handshake fails: the alert that names the reason.

Event loops close such a connection and throw the alert away, so that its client sees no more than an end.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from typing import Final

LINGER_SECONDS: Final = 1.0
"""How long a client may take to end the connection itself. What it has sent meanwhile is read: when a socket
is closed with data that nobody has read, the system throws away what was sent to the client."""
_CHUNK: Final = 1 << 14


class Handshake:
    """One connection's handshake, from before a task asks its event loop for it until close()."""

    def __init__(self, client: socket.socket) -> None:
        """`client` is the connection's socket, which the loop may close."""
        self._client: Final = client.dup()
        self.alert = b""
        """Why it has failed, as a TLS record."""
        _current.set(self)

    async def send_alert(self) -> None:
        """Tell the client, where there is something to tell."""
        if not self.alert:
            return
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            async with asyncio.timeout(LINGER_SECONDS):
                await loop.sock_sendall(self._client, self.alert)
                self._client.shutdown(socket.SHUT_WR)
                while await loop.sock_recv(self._client, _CHUNK):
                    pass

    def close(self) -> None:
        self._client.close()


_current: Final[ContextVar[Handshake]] = ContextVar("handshake")


class _Connection(ssl.SSLObject):
    """Keeps the alert of a handshake that fails."""

    outgoing: ssl.MemoryBIO
    handshake: Handshake | None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.handshake is not None:
                self.handshake.alert = self.outgoing.read()
            raise
        self.handshake = None


class ServerContext(ssl.SSLContext):
    """Its connections give the alert to the Handshake of the task that has asked for them."""

    sslobject_class = _Connection

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        connection = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(connection, _Connection)
        connection.outgoing = outgoing
        connection.handshake = _current.get(None)
        return connection
