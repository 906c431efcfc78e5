"""Channel: the messages between the supervisor and one worker, over a pair of connected sockets."""

import asyncio
import socket
from typing import Final, Self

import msgspec

HEAD: Final = 4
"""Bytes of a message's length."""
BACKLOG_BYTES: Final = 1 << 20
"""If more bytes wait for the other side, records are dropped."""
READINESS: Final = "readiness"
METRICS: Final = "metrics"
QUOTAS: Final = "quotas"
CONSOLE: Final = "console"


class Record(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A record of the log of reports, to all workers."""

    offset: int
    timestamp_ms: int
    value: bytes


class Appended(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A report that a worker appends to the log."""

    value: bytes


class Ask(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The supervisor asks a worker for READINESS, METRICS, QUOTAS, or CONSOLE with a request."""

    number: int
    what: str
    body: bytes = b""


class WorkerReply(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The worker's reply to the question with this number; `body` is JSON, or a reply of the console."""

    number: int
    body: bytes


class LastMetrics(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The metrics of a worker that ends."""

    body: bytes


Message = Record | Appended | Ask | WorkerReply | LastMetrics
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Message).decode


class Channel:
    """One end of the connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader: Final = reader
        self._writer: Final = writer

    @classmethod
    async def over(cls, end: socket.socket) -> Self:
        """The channel over one socket of a pair."""
        end.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=end))

    @property
    def full(self) -> bool:
        """Whether the other side does not read: it is stopped, or stalls."""
        return self._writer.transport.get_write_buffer_size() > BACKLOG_BYTES

    def send(self, message: Message) -> None:
        """Send without waiting; a closed channel drops the message."""
        if not self._writer.is_closing():
            body = _encode(message)
            self._writer.write(len(body).to_bytes(HEAD, "big") + body)

    async def receive(self) -> Message | None:
        """The next message; None at the end."""
        try:
            head = await self._reader.readexactly(HEAD)
            message: Message = _decode(await self._reader.readexactly(int.from_bytes(head, "big")))
        except (asyncio.IncompleteReadError, OSError):
            return None
        return message

    async def flush(self) -> None:
        """Wait until the other side has taken nearly all that was sent, or is gone."""
        try:
            await self._writer.drain()
        except OSError:
            return

    def close(self) -> None:
        """Close this end."""
        self._writer.close()
