"""A tap between clients and the proxy. It forwards bytes as they arrive, and records what clients are
sent.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self

Address = tuple[str, int]
CHUNK: Final = 1 << 18
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
        self._servers: list[asyncio.Server] = []
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
        for (host, port), target in self._ports.items():

            async def serve(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Address = target
            ) -> None:
                await self._serve(reader, writer, target)

            self._servers.append(await asyncio.start_server(serve, host, port))

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Address
    ) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*target)
        except OSError:
            writer.close()
            return
        stream = Stream()
        self.streams.append(stream)
        for work in (_pass(reader, far_writer), self._note(stream, far_reader, writer)):
            task = asyncio.get_running_loop().create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _note(self, stream: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def note(data: bytes) -> None:
            stream.arrivals.append((time.monotonic(), len(data)))
            if self._keep:
                stream.kept.extend(data)

        await _pass(reader, writer, note)


async def _pass(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    note: Callable[[bytes], None] = lambda data: None,
) -> None:
    try:
        while data := await reader.read(CHUNK):
            note(data)
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
