"""FrameServer: responds to each frame, for clients that block."""

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from tests.support.messages.kio_messages import framed

HOST: Final = "127.0.0.1"
LENGTH: Final = 4


class FrameServer:
    """A server with a thread for each connection.

    `respond` gets a frame without its length, and returns the response without its length. None ends the
    connection.
    """

    def __init__(self, respond: Callable[[bytes], bytes | None] = lambda frame: frame[:8]) -> None:
        self.frames: Final[list[bytes]] = []
        """Every frame received, without its length."""
        self.ends: Final[list[str]] = []
        """How clients ended their connections: `end`, `reset`, or `partial` in the middle of a frame."""
        self._respond: Final = respond
        self._server: Final = socket.create_server((HOST, 0), backlog=100)
        self.port: Final[int] = self._server.getsockname()[1]
        self._threads: Final[list[threading.Thread]] = []
        self._accepting: Final = threading.Thread(target=self._accept)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until every client has gone."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._server.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            thread.start()
            self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as reader:
            try:
                while head := reader.read(LENGTH):
                    size = int.from_bytes(head, "big")
                    frame = reader.read(size)
                    if len(frame) < size:
                        self.ends.append("partial")
                        return
                    self.frames.append(frame)
                    response = self._respond(frame)
                    if response is None:
                        return
                    connection.sendall(framed(response))
                self.ends.append("end")
            except OSError:
                self.ends.append("reset")
