import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from bench.attacks import frames

THROTTLE_MS = 3
"""The broker's throttle_time_ms, at the end of its responses."""


def produced(error_code: int = 0) -> bytes:
    """The response to a batch."""
    partition = struct.pack(">ihqqq", 0, error_code, 0, -1, 0)
    body = struct.pack(">i", 1) + frames.topics("topic", [partition]) + struct.pack(">i", THROTTLE_MS)
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def broker() -> Iterator[int]:
    """Responds to everything with a produce response."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(client: socket.socket) -> None:
            # A flood that is cancelled may leave responses unread, and its kernel then resets the connection.
            with suppress(ConnectionError), client, client.makefile("rb") as requests:
                while size := requests.read(4):
                    requests.read(int.from_bytes(size, "big"))
                    client.sendall(produced())

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
