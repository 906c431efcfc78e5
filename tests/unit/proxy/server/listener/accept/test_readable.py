"""Waiting for bytes leaves them in the socket, and no reader behind."""

import asyncio
import socket

import pytest

from proxy.server.listener.accept.readable import until_readable


async def test_bytes_are_awaited_and_stay_in_the_socket() -> None:
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        waiting = asyncio.ensure_future(until_readable(loop, near))
        await asyncio.sleep(0)
        assert not waiting.done()
        far.sendall(b"abc")
        await waiting
        assert near.recv(10) == b"abc"
        far.close()
        await until_readable(loop, near)
        assert near.recv(10) == b""


async def test_one_that_is_cancelled_waits_no_longer() -> None:
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        waiting = asyncio.ensure_future(until_readable(loop, near))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not loop.remove_reader(near)
