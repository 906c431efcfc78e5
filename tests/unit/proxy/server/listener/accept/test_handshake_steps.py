"""A handshake goes on in its turn, and not after its end; test_tls_opener.py has real handshakes."""

import asyncio
from typing import cast

import pytest

from proxy.server.listener.accept.handshake_steps import Steps
from proxy.server.listener.accept.handshake_turns import HandshakeTurns
from tests.support.waiting import reached


class Socket:
    """Fulfils the part of asyncio.Transport and of the event loop's TLS that a handshake uses."""

    def __init__(self) -> None:
        self.reads = True
        self.closing = False
        self.steps: Steps | None = None
        self.came: list[tuple[int, bool, bool]] = []
        """For each turn: the number of new bytes, whether the socket was read, whether it was the turn."""

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.closing

    def buffer_updated(self, size: int) -> None:
        assert self.steps is not None
        self.came.append((size, self.reads, self.steps.has_come()))


@pytest.fixture
def client() -> Socket:
    return Socket()


def started(turns: HandshakeTurns, client: Socket) -> Steps:
    steps = client.steps = Steps(turns, "10.0.0.1")
    assert steps.has_come()  # the first step
    steps.first_taken(cast("asyncio.BufferedProtocol", client), cast("asyncio.Transport", client))
    return steps


async def test_a_client_is_read_again_in_its_turn(client: Socket) -> None:
    steps = started(HandshakeTurns(asyncio.get_running_loop()), client)
    for turn in (1, 2):
        assert not steps.has_come()
        assert not client.reads
        assert not steps.has_come()  # asks once
        await reached(lambda turn=turn: len(client.came) == turn, "turns")
        assert client.came[-1] == (0, True, True)


@pytest.mark.parametrize("how", ["over", "closing"])
async def test_a_handshake_that_has_ended_does_not_go_on(client: Socket, how: str) -> None:
    turns = HandshakeTurns(asyncio.get_running_loop())
    steps = started(turns, client)
    assert not steps.has_come()
    if how == "over":
        steps.end()
    else:
        client.closing = True
    await turns.turn("10.0.0.1")
    assert client.came == []


async def test_the_last_step_may_end_the_handshake(client: Socket) -> None:
    steps = started(HandshakeTurns(asyncio.get_running_loop()), client)
    read = client.buffer_updated

    def last(size: int) -> None:
        read(size)
        steps.end()

    client.buffer_updated = last  # type: ignore[method-assign]
    assert not steps.has_come()
    await reached(lambda: len(client.came) == 1, "turns")
    assert not steps.has_come()
    assert client.reads
