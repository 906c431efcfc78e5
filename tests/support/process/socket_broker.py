"""SocketBroker: a broker on a real socket. A subclass makes the responses."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar, Self

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


class SocketBroker:
    """Responds to ApiVersions itself, and to other APIs with `respond` of the subclass."""

    newest: ClassVar[Mapping[int, int]]
    """The newest version of each API."""
    port = 0
    """Where to listen; 0: any free port."""

    async def __aenter__(self) -> Self:
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.disconnect()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return sum(not task.done() for task in self._tasks)

    def disconnect(self) -> None:
        """Close every connection; the broker accepts new ones."""
        for writer in self._writers:
            writer.close()

    async def respond(self, request: Any) -> Any:
        """Return the response to a request, both as types of kio; None: send none."""
        raise NotImplementedError

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        if not self._server.is_serving():
            # It was accepted when __aexit__ began, which has not seen it.
            writer.close()
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
