"""The driver's side of one connection: it sends its request frames in a cycle."""

import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from bench.load.frames import CORRELATION, REQUEST_CORRELATION
from bench.load.poller import WRITE, Poller

# A response's size and correlation id.
_HEAD: Final = struct.Struct("!ii")
WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
BUFFER_SIZE: Final = 1 << 20
OnResponse = Callable[["Client", float], None]


class LoadError(Exception):
    """The peer ended the connection, responded out of order, or did not respond."""


class Client:
    """Sends on request, counts responses, and calls `on_response(client, due)` for each, in order.

    All clients of a thread share `buffer`: a client keeps only the bytes of a partial response head.
    """

    def __init__(
        self,
        sock: socket.socket,
        requests: Sequence[bytes],
        poller: Poller,
        buffer: bytearray,
        on_response: OnResponse,
    ) -> None:
        self._sock = sock
        self._tls = sock if isinstance(sock, ssl.SSLSocket) else None
        self._requests = [bytearray(request) for request in requests]
        self._request = self._requests[0]
        self._poller = poller
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._on_response = on_response
        self._due: deque[float] = deque()
        """When each request without a response was due."""
        self._next_id = 0
        """The correlation id of the request that is sent next, or in part."""
        self._expected_id = 0
        """The correlation id of the next response."""
        self._owed = 0
        """Requests that are offered and not yet sent whole."""
        self._offset = 0
        """Bytes of the current request that are sent."""
        self._blocked = False
        """Whether the socket accepts no more bytes at the moment."""
        self._head = b""
        """The beginning of a response whose size and correlation id have not arrived whole."""
        self._ahead = 0
        """Bytes of the current response that have not arrived."""
        self.received = 0
        self.sent = 0
        """Bytes."""
        poller.add(sock, self.on_events)

    def offer(self, due: float) -> None:
        """Send one more request as soon as the socket accepts it; its latency is measured from `due`
        (seconds).
        """
        self._due.append(due)
        self._owed += 1
        if not self._blocked:
            self._flush()

    def on_events(self, mask: int) -> None:
        """Handle the poller's events. Raises LoadError if the connection or the order of responses broke."""
        try:
            if mask & WRITE:
                self._flush()
            if mask & ~WRITE:
                self._read()
        except OSError as error:
            raise LoadError(f"the connection broke after {self._expected_id} responses: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._poller.remove(self._sock)
        self._sock.close()

    def _flush(self) -> None:
        """Send what is owed, as far as the socket accepts it."""
        while self._owed:
            CORRELATION.pack_into(self._request, REQUEST_CORRELATION, self._next_id)
            try:
                count = self._sock.send(memoryview(self._request)[self._offset :])
            except WOULD_BLOCK:
                self._watch_writes(True)
                return
            self._offset += count
            self.sent += count
            if self._offset == len(self._request):
                self._offset = 0
                self._next_id += 1
                self._request = self._requests[self._next_id % len(self._requests)]
                self._owed -= 1
        self._watch_writes(False)

    def _watch_writes(self, wanted: bool) -> None:
        if wanted != self._blocked:
            self._blocked = wanted
            self._poller.watch_writes(self._sock, wanted)

    def _read(self) -> None:
        try:
            self._read_once()
            # The poller does not see bytes that TLS has buffered.
            while self._tls is not None and self._tls.pending():
                self._read_once()
        except WOULD_BLOCK:
            return

    def _read_once(self) -> None:
        start = len(self._head)
        self._buffer[:start] = self._head
        count = self._sock.recv_into(self._view[start:])
        if count == 0:
            raise LoadError(f"the connection was closed after {self._expected_id} responses")
        self.received += count
        for _ in range(self._completed(start + count)):
            self._on_response(self, self._due.popleft())

    def _completed(self, end: int) -> int:
        """Count the responses that end within the first `end` bytes; remember where the next one begins."""
        at = self._ahead
        completed = int(0 < at <= end)
        while end - at >= _HEAD.size:
            size, correlation_id = _HEAD.unpack_from(self._buffer, at)
            if correlation_id != self._expected_id:
                raise LoadError(f"correlation id {correlation_id} came where {self._expected_id} was due")
            self._expected_id += 1
            at += 4 + size
            if at <= end:
                completed += 1
        self._ahead = max(at - end, 0)
        self._head = bytes(self._view[at:end])
        return completed
