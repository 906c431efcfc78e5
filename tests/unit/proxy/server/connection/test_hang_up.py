"""A peer that has hung up is noticed without reading."""

import asyncio
import socket

import pytest

from proxy.server.connection.hang_up import TCP_INFO, has_sent, hung_up
from tests.support.waiting import reached


@pytest.mark.skipif(TCP_INFO < 0, reason="only Linux tells the state of a socket")
async def test_a_peer_that_has_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        theirs = socket.create_connection(listening.getsockname())
        ours, _ = listening.accept()
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
    transport.pause_reading()
    assert not has_sent(transport)
    theirs.sendall(b"unread")
    await reached(lambda: has_sent(transport), "the bytes")
    assert not hung_up(transport)
    theirs.close()
    await reached(lambda: hung_up(transport), "the end")
    transport.abort()


async def test_what_is_no_socket_has_not_hung_up() -> None:
    class NoSocket(asyncio.Transport):
        def get_extra_info(self, name: str, default: object = None) -> None:
            return None

    assert not hung_up(NoSocket())
    assert not has_sent(NoSocket())
