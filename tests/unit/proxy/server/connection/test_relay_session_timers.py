"""RelaySession's timer after a suspension of the process, on a loop whose clock the test sets."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import Context
from functools import partial
from typing import TypeVarTuple, cast

import pytest

from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from proxy.server.connection.relay_session import AFTER_LATE_SECONDS, LATE_SECONDS
from tests.support.messages.exchanges import produce
from tests.support.server.client_transport import ClientTransport
from tests.support.stories.playbook import EVERYONE, new_relay

Arguments = TypeVarTuple("Arguments")
QUOTA = {EVERYONE: {"producer_byte_rate": 1000.0}}


class Loop(asyncio.SelectorEventLoop):
    """Keeps the timers, and runs nothing by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], object]]] = []

    def time(self) -> float:
        return self.now

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self.timers.append((when, partial(callback, *args)))
        return asyncio.TimerHandle(when, callback, args, self)

    def run_last_timer(self, late: float = 0.0) -> None:
        when, callback = self.timers[-1]
        self.now = when + late
        callback()


@pytest.fixture
def loop() -> Iterator[Loop]:
    with closing(Loop()) as loop:
        yield loop


class Host:
    """Takes connections; brokers are connected by the test."""

    def opened(self, connection: Connection, address: str) -> Relay:
        return new_relay(QUOTA).relay

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        broker.connection_made(cast("asyncio.BaseTransport", ClientTransport()))


def muted(loop: Loop) -> Relay:
    """The relay of a client that waits for its quota."""
    connection = Connection(Host(), 1, loop)  # type: ignore[arg-type]
    connection.connection_made(cast("asyncio.BaseTransport", ClientTransport()))
    connection.data_received(produce(1, size=5000))
    relay = connection.session.relay
    assert relay is not None
    assert relay.status.throttled
    return relay


def test_a_timer_ends_the_wait(loop: Loop) -> None:
    relay = muted(loop)
    loop.run_last_timer(late=LATE_SECONDS)
    assert not relay.status.throttled


def test_after_a_suspension_the_wait_goes_on_until_others_had_their_turn(loop: Loop) -> None:
    relay = muted(loop)
    loop.run_last_timer(late=LATE_SECONDS + 0.5)
    assert relay.status.throttled
    assert loop.timers[-1][0] == loop.now + AFTER_LATE_SECONDS
    loop.run_last_timer()
    assert not relay.status.throttled
