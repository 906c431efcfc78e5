"""A tap between clients and the proxy. It forwards bytes as they arrive, and records what clients are
sent.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

Address = tuple[str, int]
CHUNK: Final = 1 << 18
BACKLOG: Final = 100
ADVERTISED_HOST: Final = "127.0.0.2"
"""Another loopback address. If a proxy advertises this host, its clients connect to taps at the proxy's own
ports.
"""


class Stream:
    """The bytes sent to the client of one connection."""

    def __init__(self) -> None:
        self.arrivals: Final[list[tuple[float, int]]] = []
        """The time (time.monotonic) and the number of bytes of each piece."""
        self.kept: Final = bytearray()
        """All bytes, if the tap keeps them."""


class Tap:
    """Forwards each of `ports` (listening port: target port) during its `with` block."""

    def __init__(self, ports: Mapping[Address, Address], *, keep: bool = False) -> None:
        self.streams: Final[list[Stream]] = []
        self._ports: Final = dict(ports)
        self._keep: Final = keep
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, name="tap")
        self._listening: Final[list[socket.socket]] = []
        self._sockets: Final[set[socket.socket]] = set()
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def arrivals(self) -> list[tuple[float, int]]:
        """The pieces of all connections, in order."""
        return sorted(arrival for stream in self.streams for arrival in stream.arrivals)

    async def _listen(self) -> None:
        for address, target in self._ports.items():
            listening = socket.create_server(address, backlog=BACKLOG)
            listening.setblocking(False)
            self._listening.append(listening)
            self._loop.add_reader(listening, self._accept, listening, target)

    async def _end(self) -> None:
        for listening in self._listening:
            self._loop.remove_reader(listening)
            listening.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Those of tasks that had not begun.
        for each in self._sockets:
            each.close()

    def _accept(self, listening: socket.socket, target: Address) -> None:
        near, _ = listening.accept()
        far = socket.socket()
        for each in (near, far):
            each.setblocking(False)
            self._sockets.add(each)
        task = self._loop.create_task(self._serve(near, far, target))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, near: socket.socket, far: socket.socket, target: Address) -> None:
        try:
            with suppress(OSError):
                await self._loop.sock_connect(far, target)
                stream = Stream()
                self.streams.append(stream)
                await asyncio.gather(self._pass(near, far), self._pass(far, near, stream))
        finally:
            for each in (near, far):
                self._sockets.discard(each)
                each.close()

    async def _pass(self, source: socket.socket, sink: socket.socket, stream: Stream | None = None) -> None:
        """Pass bytes on until one side closes. `stream` records them."""
        with suppress(ConnectionError):
            while data := await self._loop.sock_recv(source, CHUNK):
                if stream is not None:
                    stream.arrivals.append((time.monotonic(), len(data)))
                    if self._keep:
                        stream.kept.extend(data)
                await self._loop.sock_sendall(sink, data)
        # The other direction ends, too.
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
