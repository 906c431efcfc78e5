"""Waiting until a socket has bytes, without reading them."""

import asyncio
import socket


async def until_readable(loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
    """Wait until the socket has bytes or a connection to accept, or is closed by the other side."""
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(client, _set, readable)
    try:
        await readable
    finally:
        loop.remove_reader(client)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
