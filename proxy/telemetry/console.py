"""Requests of the console that concern the quotas of a process, and the replies."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

OVERVIEW: Final = "overview"
CONFIGURED: Final = "configured"
EXPLAIN: Final = "explain"
SHARES: Final = "shares"
CHANGE: Final = "change"
READING: Final = (OVERVIEW, CONFIGURED, EXPLAIN, SHARES)
"""Requests that change nothing."""
MAX_BODY: Final = 64 << 10
"""The maximum size of a change, in bytes."""


class ConsoleRequest(msgspec.Struct, array_like=True, frozen=True):
    """A request to /api/WHAT of the admin port."""

    what: str
    query: dict[str, str] = {}
    body: bytes = b""
    author: str = ""
    """Who changes a quota, for the audit log."""
    address: str = ""
    """The client's address."""


class ConsoleReply(msgspec.Struct, array_like=True, frozen=True):
    """The status and the JSON body of an HTTP response."""

    status: int
    body: bytes


encode_request: Final = msgspec.msgpack.encode
decode_request: Final = msgspec.msgpack.Decoder(ConsoleRequest).decode
encode_reply: Final = msgspec.msgpack.encode
decode_reply: Final = msgspec.msgpack.Decoder(ConsoleReply).decode
"""Between a supervisor and its workers."""
Respond = Callable[[ConsoleRequest], Awaitable[ConsoleReply]]


async def no_console(request: ConsoleRequest) -> ConsoleReply:
    """Reply that there is no process to ask (yet)."""
    return ConsoleReply(503, b'{"error": "the proxy is starting; try again"}')
