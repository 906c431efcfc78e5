"""Closes a client's side so that the responses that were written to it arrive."""

import asyncio
from typing import Final

GENTLE_SECONDS: Final = 0.25
"""How long a client may take to close its side after the proxy has closed its own."""


def close_gently(client: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
    """Close the client's side without a reset. A reset would take away responses that have not arrived yet;
    it follows if the client has sent requests that are not read.
    """
    if client.is_closing() or not client.can_write_eof():
        client.close()
        return
    client.write_eof()
    client.resume_reading()
    loop.call_later(GENTLE_SECONDS, client.close)
