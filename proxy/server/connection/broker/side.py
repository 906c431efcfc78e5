"""BrokerSide: the broker's socket of a Connection, connected when there is something to send to it."""

import asyncio
from typing import Final, cast, final

from proxy.relay.relay import Relay
from proxy.server.connection.broker.events import BrokerEvents
from proxy.server.connection.pauses import Pauses
from proxy.server.connection.streams.direct import Direct, encrypts, plain_socket
from proxy.server.connection.streams.side import StreamedSide
from proxy.server.connection.streams.stream import LEAST_BYTES, SocketStream
from proxy.wire.reader import NOTHING

WRITE_BUFFER_BYTES: Final = 0
"""The proxy stops reading from one side if more than this waits to be written to the other. It is 0 because
the kernel's socket buffers keep both sides busy, and everything read meanwhile would have to be copied.
"""
TLS_WRITE_BUFFER_BYTES: Final = 64 << 10
"""The same over TLS, where a limit of 0 counts as reached by an empty buffer; TLS copies its output anyway.
"""
LINGER_SECONDS: Final = 30.0
"""How long a broker may take to read the rest and close after its client has gone."""


@final
class BrokerSide(StreamedSide):
    """Tells its connection what the broker sends, and when the broker's socket takes no more."""

    __deletable__ = ("_events",)

    def __init__(self, events: BrokerEvents, loop: asyncio.AbstractEventLoop) -> None:
        self.transport: asyncio.Transport | None = None
        """None before it is connected, and after it has been lost."""
        self.connecting = False
        self._events = events
        self._loop: Final = loop
        self._waiting = NOTHING
        self._ending = False
        self._late = False
        """Whether responses are due that quotas need after the end of the connection."""
        self.closed_by_broker = False
        """Whether the broker has closed the connection, or it broke."""
        self._stream: SocketStream | None = None
        """Created when the first large response arrives."""
        self.tls = False
        """Whether the socket's bytes are TLS records, and not the broker's own."""
        self.pauses: Final = Pauses()

    def wait_with(self, pieces: list[bytes]) -> bool:
        """Keep bytes until the broker is connected; returns whether the caller has to start connecting."""
        self._waiting = [*self._waiting, *pieces]
        asked = self.connecting
        self.connecting = True
        return not asked

    def pause(self, why: int, on: bool) -> None:
        """Add or remove a reason for not reading."""
        self.pauses.change(None if self._ending else self.transport, why, on)

    def failed(self) -> None:
        """Drop the bytes that wait, because the broker cannot be reached.

        If the dial times out just after it has connected, uvloop closes the transport without a call of
        connection_lost(), and raises RuntimeError for later calls.
        """
        self.connecting = False
        self._waiting = NOTHING
        self.transport = None

    def streams(self, relay: Relay) -> bool:
        """Whether follow() has anything to do."""
        return self._stream is not None or (relay.forwardable >= LEAST_BYTES and not self.tls)

    def follow(self, direct: Direct) -> None:
        """See SocketStream.follow(). `direct` writes to the client."""
        stream = self._stream
        if stream is None:
            transport = self.transport
            descriptor = -1 if transport is None else plain_socket(transport)
            if descriptor < 0 or transport is None:
                return
            stream = self._stream = SocketStream(self, transport, descriptor, direct)
        stream.follow()

    @property
    def gone(self) -> bool:
        """Whether there is no socket, and none is being connected."""
        return self.transport is None and not self.connecting

    def part(self) -> None:
        """Drop the references to the connection: both sides are closed."""
        self._stream = None
        del self._events

    def await_late(self, late: bool) -> None:
        """Note whether responses are due that quotas need after the end of the connection."""
        ended = self._late and not late
        self._late = late
        if ended and self._ending and self.transport is not None:
            self.transport.close()

    def end(self, unread: bool = False) -> None:
        """Half-close, so that the broker reads to the end: closing with an unread response could reset the
        connection before the broker has read everything. If it is not connected yet, this happens then.

        `unread`: close at once. The broker waits for events before it responds, and would notice the end only
        then.
        """
        self._ending = True
        transport = self.transport
        if transport is None:
            return
        if self._stream is not None:
            self._stream.stop()
        if unread:
            transport.close()
        elif transport.can_write_eof() and not transport.is_closing():
            transport.write_eof()
            transport.resume_reading()
        elif self._late:
            transport.resume_reading()  # over TLS, a transport that is closing drops what it receives
        elif not transport.is_closing():
            transport.close()  # over TLS: reads on until the broker closes its side
        self._loop.call_later(LINGER_SECONDS, transport.abort)

    def forwardable(self) -> int:
        return self._events.broker_forwardable()

    def forwarded(self, size: int) -> None:
        self._events.broker_forwarded(size)

    def active(self) -> bool:
        return self._events.broker_active()

    # The socket's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        broker = cast("asyncio.Transport", transport)
        self.connecting = False
        self.transport = broker
        self.tls = encrypts(broker)
        self.pauses.clear()
        broker.set_write_buffer_limits(high=TLS_WRITE_BUFFER_BYTES if self.tls else WRITE_BUFFER_BYTES)
        broker.writelines(self._waiting)
        self._waiting = NOTHING
        if self._ending:
            self.end()
        else:
            self._events.broker_connected()

    def data_received(self, data: bytes) -> None:
        self._events.broker_sent(data)

    def eof_received(self) -> bool:
        """Close: a broker that sends no more takes no more either."""
        self.closed_by_broker = True
        return False

    def pause_writing(self) -> None:
        self._events.broker_full(True)

    def resume_writing(self) -> None:
        self._events.broker_full(False)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport is None:
            return  # failed() was first
        self.transport = None
        if exc is not None:
            self.closed_by_broker = True
        self._events.broker_lost()
