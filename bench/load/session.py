"""The fake broker's side of one connection."""

import socket
import struct
import sys
from collections import deque
from typing import Final

from bench.load.canned import HEAD, RejectedRequest, response_to
from bench.load.cold import ColdResponses
from bench.load.frames import CORRELATION, REQUEST_CORRELATION, RESPONSE_CORRELATION
from bench.load.poller import WRITE, Poller

_I32: Final = struct.Struct("!i")


class Session:
    """Responds to requests in order, with one system call each. Nothing stays in the shared `buffer`.

    With `join`, the responses to all requests of one read leave in one system call.
    """

    def __init__(
        self, sock: socket.socket, poller: Poller, cold: ColdResponses, buffer: bytearray, join: bool
    ) -> None:
        self._sock = sock
        self._poller = poller
        self._cold = cold
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._join = join
        self._rest = b""
        """The beginning of a request that has not arrived whole."""
        self._unsent: deque[tuple[bytearray, int]] = deque()
        """Response frames, which connections share, and their correlation ids."""
        self._offset = 0
        """Bytes of the first of them that are sent."""
        self._blocked = False
        """Whether the socket accepts no more bytes at the moment."""

    def on_events(self, mask: int) -> None:
        """Read, respond, write; close the connection at its end or on an unsupported request."""
        try:
            if mask & WRITE:
                self._flush()
            if mask & ~WRITE:
                self._read()
        except RejectedRequest as rejection:
            print(f"fake broker: connection ended: {rejection}", file=sys.stderr, flush=True)
            self._close()
        except (OSError, EOFError):
            self._close()

    def _close(self) -> None:
        self._poller.remove(self._sock)
        self._sock.close()

    def _read(self) -> None:
        """Read once, and respond to each whole request. Raises EOFError and RejectedRequest."""
        start = len(self._rest)
        self._buffer[:start] = self._rest
        count = self._sock.recv_into(self._view[start:])
        if count == 0:
            raise EOFError
        end = start + count
        at = 0
        while end - at >= 4:
            (size,) = _I32.unpack_from(self._buffer, at)
            if not HEAD.size - 4 <= size <= len(self._buffer) - 4:
                raise RejectedRequest(f"a frame of {size} bytes; the most is {len(self._buffer) - 4}")
            if end - at < 4 + size:
                break
            self._response(at, size)
            at += 4 + size
        self._rest = bytes(self._view[at:end])
        if self._join and self._unsent and not self._blocked:
            self._join_unsent()
            self._flush()

    def _response(self, at: int, size: int) -> None:
        """Append the response to the request of `size` bytes whose size field is at `at`."""
        (correlation_id,) = CORRELATION.unpack_from(self._buffer, at + REQUEST_CORRELATION)
        self._unsent.append((response_to(self._buffer, at, size, self._cold), correlation_id))
        if not self._join and not self._blocked:
            self._flush()

    def _join_unsent(self) -> None:
        """Copy the unsent responses into one buffer."""
        first_id = self._unsent[0][1]
        joined = bytearray()
        for response, correlation_id in self._unsent:
            CORRELATION.pack_into(response, RESPONSE_CORRELATION, correlation_id)
            joined += response
        self._unsent.clear()
        self._unsent.append((joined, first_id))

    def _flush(self) -> None:
        """Send what the socket accepts. Connections share the frames, so each sets its own correlation id."""
        while self._unsent:
            response, correlation_id = self._unsent[0]
            CORRELATION.pack_into(response, RESPONSE_CORRELATION, correlation_id)
            try:
                self._offset += self._sock.send(memoryview(response)[self._offset :])
            except BlockingIOError:
                self._watch_writes(True)
                return
            if self._offset == len(response):
                self._offset = 0
                self._unsent.popleft()
        self._watch_writes(False)

    def _watch_writes(self, wanted: bool) -> None:
        if wanted != self._blocked:
            self._blocked = wanted
            self._poller.watch_writes(self._sock, wanted)
