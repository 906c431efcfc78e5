"""close_gently(): a client that goes on sending is not reset before it has its responses."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from proxy.server.connection.gentle_close import GENTLE_SECONDS, close_gently


class Transport:
    """Records what is done to it."""

    def __init__(self, closing: bool = False, half: bool = True) -> None:
        self.done: list[str] = []
        self._closing = closing
        self._half = half

    def is_closing(self) -> bool:
        return self._closing

    def can_write_eof(self) -> bool:
        return self._half

    def write_eof(self) -> None:
        self.done.append("half-closed")

    def resume_reading(self) -> None:
        self.done.append("read on")

    def close(self) -> None:
        self.done.append("closed")


class Loop:
    """Calls what is due when the test says so."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self.later.append((seconds, call))


def closed(transport: Transport) -> Loop:
    loop = Loop()
    close_gently(cast("asyncio.Transport", transport), cast("asyncio.AbstractEventLoop", loop))
    return loop


def test_the_client_has_time_to_close_its_side() -> None:
    transport = Transport()
    loop = closed(transport)
    assert transport.done == ["half-closed", "read on"]
    [(seconds, close)] = loop.later
    close()
    assert (seconds, transport.done[2:]) == (GENTLE_SECONDS, ["closed"])


@pytest.mark.parametrize(
    "transport", [Transport(half=False), Transport(closing=True)], ids=["TLS", "closing"]
)
def test_a_side_that_cannot_be_half_closed_is_closed_at_once(transport: Transport) -> None:
    assert closed(transport).later == []
    assert transport.done == ["closed"]
