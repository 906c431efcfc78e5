"""SocketBroker: a broker on a real socket. A subclass makes the responses."""

import asyncio
import socket
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import API_VERSIONS
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import (
    framed,
    read_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.messages.requests import build, part

BACKLOG: Final = 100


class SocketBroker:
    """Responds to ApiVersions itself, and to other APIs with `respond` of the subclass."""

    newest: ClassVar[Mapping[int, int]]
    """The newest version of each API."""
    port = 0
    """Where to listen; 0: any free port."""

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._accepted: set[socket.socket] = set()
        """Connections that have no writer yet."""
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._listening = socket.create_server(("127.0.0.1", self.port), backlog=BACKLOG)
        self._listening.setblocking(False)
        self._loop.add_reader(self._listening, self._accept)
        self.address: tuple[str, int] = self._listening.getsockname()[:2]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._loop.remove_reader(self._listening)
        self._listening.close()
        self.disconnect()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Those of tasks that had not begun.
        for each in self._accepted:
            each.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return sum(not task.done() for task in self._tasks)

    def disconnect(self) -> None:
        """Close every connection; the broker accepts new ones."""
        for writer in self._writers:
            writer.close()

    def _accept(self) -> None:
        """Accept a connection. A server of asyncio would do so in tasks of its own, which the end of the loop
        cancels before they have begun: nothing would close the connection.
        """
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        connection.setblocking(False)
        self._accepted.add(connection)
        self._tasks.append(self._loop.create_task(self._serve(connection)))

    async def respond(self, request: Any) -> Any:
        """Return the response to a request, both as types of kio; None: send none."""
        raise NotImplementedError

    async def _serve(self, connection: socket.socket) -> None:
        self._accepted.discard(connection)
        reader, writer = await asyncio.open_connection(sock=connection)
        self._writers.append(writer)
        try:
            while True:
                frame = framed(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
                header = read_request_header(Reader([frame], LENGTH_SIZE))
                if header.api_key == API_VERSIONS:
                    response = self._api_versions()
                else:
                    response = await self.respond(
                        read_frame(request_type(header.api_key, header.api_version), frame)
                    )
                if response is not None:
                    writer.write(response_frame(response, header.correlation_id))
        except (EOFError, ConnectionError, asyncio.CancelledError):
            # asyncio logs a cancelled handler of a connection as an error.
            writer.close()

    def _api_versions(self) -> Any:
        """Return a response of version 0, which clients of all versions read. Its error makes newer clients
        retry with v0.
        """
        schema = response_type(API_VERSIONS, 0)
        keys = (
            part(schema, "ApiVersion", api_key=key, min_version=0, max_version=version)
            for key, version in self.newest.items()
        )
        return build(schema, error_code=ErrorCode.none, api_keys=tuple(keys))
