"""A client that sends exactly the given frames, and records when each response arrived."""

import socket
import ssl
import struct
import time
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from tests.support.messages.kio_messages import LENGTH, read_frame, request_frame, response_type

HOST: Final = "127.0.0.1"
TIMEOUT_SECONDS: Final = 60.0
LAST_BYTES: Final = 16 << 10
"""Smaller requests are sent at once."""


class Response(NamedTuple):
    """A response, the time of its last byte (time.monotonic), and the size of its frame."""

    message: Any
    at: float
    size: int


class RawClient:
    """One connection. Requests are kio's; several may be sent before the first response is read."""

    def __init__(
        self,
        port: int,
        client_id: str | None = "raw",
        host: str = HOST,
        tls: ssl.SSLContext | None = None,
        server_name: str = "localhost",
        header: bytes = b"",
        source: str = "",
    ) -> None:
        """`header` is sent before everything else, also before the TLS handshake. `source`: the client's own
        address.
        """
        self._client_id = client_id
        self._socket = socket.create_connection(
            (host, port), TIMEOUT_SECONDS, source_address=(source, 0) if source else None
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(header)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=server_name)
        self._responses = self._socket.makefile("rb")
        self._awaited: deque[tuple[int, Any]] = deque()
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, request: Any, *, expects_response: bool = True) -> float:
        """Send a request; return the time just before its last bytes were sent. Afterwards the process may be
        late to go on, when the response is already here. `expects_response` is false for acks=0.
        """
        self._sent += 1
        if expects_response:
            self._awaited.append((self._sent, response_type(request.__api_key__, request.__version__)))
        frame = request_frame(request, self._sent, self._client_id)
        self.send_bytes(frame[:-LAST_BYTES])
        before = time.monotonic()
        self.send_bytes(frame[-LAST_BYTES:])
        return before

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_until_full(self, data: bytes, seconds: float) -> bytes:
        """Send until the socket accepts nothing for this long; return the rest."""
        left = memoryview(data)
        self._socket.settimeout(seconds)
        with suppress(TimeoutError):
            while left:
                left = left[self._socket.send(left) :]
        self._socket.settimeout(TIMEOUT_SECONDS)
        return bytes(left)

    def receive_frame(self) -> bytes:
        """Return the next frame with its length. Raises EOFError if the connection ends."""
        length = self._responses.read(LENGTH)
        size = int.from_bytes(length, "big")
        body = self._responses.read(size) if len(length) == LENGTH else b""
        if len(length) < LENGTH or len(body) < size:
            raise EOFError("the connection ended")
        return length + body

    def receive(self) -> Response:
        """Return the next response, which must be that to the oldest request."""
        frame = self.receive_frame()
        at = time.monotonic()
        correlation_id, schema = self._awaited.popleft()
        assert int.from_bytes(frame[LENGTH : 2 * LENGTH], "big") == correlation_id, "responses out of order"
        return Response(read_frame(schema, frame), at, len(frame))

    def ask(self, request: Any) -> Any:
        """Send a request, and return its response."""
        self.send(request)
        return self.receive().message

    def ended(self, seconds: float = 30.0) -> bool:
        """Whether the other side ends the connection within this time. Bytes that arrive until then are
        dropped.
        """
        self._socket.settimeout(seconds)
        try:
            while self._socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    def shut_down(self) -> None:
        """Shut down the sending side, and continue to read."""
        self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Reset the connection, as the kernel does for a killed process with unread data."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    @property
    def address(self) -> tuple[str, int]:
        """The client's own host and port."""
        host, port = self._socket.getsockname()[:2]
        return host, port

    def close(self) -> None:
        self._responses.close()
        self._socket.close()
