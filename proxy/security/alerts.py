"""TLS alerts for clients whose handshake fails.

OpenSSL produces an alert with the reason, but event loops close such a connection without sending it, and the
client only sees that the connection ends.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from typing import Final, Protocol

from proxy.security.tls_calls import call_directly
from proxy.security.tls_reader import TlsReader

LINGER_SECONDS: Final = 1.0
"""Time for a client to close the connection. The proxy reads until then: if a socket is closed while received
data is unread, the kernel resets the connection and discards the alert."""
_CHUNK: Final = 1 << 14
"""Bytes that are read and discarded at once."""


class Turn(Protocol):
    """Whose turn it is to take a step of a handshake."""

    def has_come(self) -> bool:
        """Whether the messages that have arrived may be read now. If not, the turn is asked for, and the
        event loop continues the handshake when it comes.
        """


class Handshake:
    """The handshake of one connection. Create it in the task that asks the event loop for the handshake."""

    def __init__(self, client: socket.socket, received: bytes = b"", turn: Turn | None = None) -> None:
        """`client` is the socket of the connection. It is duplicated, since the event loop may close it.
        `received`: what the client has sent so far. `turn` says when the client's messages are read; None if
        they are read as they arrive.
        """
        self._client: Final = client.dup()
        self.received: Final = received
        self.turn: Final = turn
        self.alert = b""
        """The TLS record with the alert, if the handshake failed; otherwise empty."""
        _current.set(self)

    async def send_alert(self) -> None:
        """Send the alert to the client, if there is one."""
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


class ServerConnection(ssl.SSLObject):
    """Reads records with a TlsReader, and keeps the alert of a failed handshake."""

    outgoing: ssl.MemoryBIO
    handshake: Handshake | None
    reader: TlsReader

    def do_handshake(self) -> None:
        try:
            self._read_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.handshake is not None:
                self.handshake.alert = self.outgoing.read()
            raise
        self.handshake = None
        self.reader.end_handshake()

    def _read_handshake(self) -> None:
        turn = None if self.handshake is None else self.handshake.turn
        while True:
            try:
                super().do_handshake()
                return
            except ssl.SSLWantReadError:
                if not self.reader.has_record() or (turn is not None and not turn.has_come()):
                    raise
                self.reader.next_of_handshake()


class ServerContext(ssl.SSLContext):
    """A context whose connections store the alert in the Handshake of the current task."""

    sslobject_class = ServerConnection

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        records = ssl.MemoryBIO()
        connection = call_directly(super().wrap_bio(records, outgoing, server_side, server_hostname, session))
        assert isinstance(connection, ServerConnection)
        handshake = _current.get(None)
        received = b"" if handshake is None else handshake.received
        connection.reader = TlsReader(incoming, records, connection.read, connection.pending, received)
        connection.read = connection.reader.read  # type: ignore[method-assign,assignment]
        connection.outgoing = outgoing
        connection.handshake = handshake
        return connection
