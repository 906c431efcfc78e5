"""WorkerLink: replies to the supervisor, over a real channel. test_supervisor.py runs real workers."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

from proxy.server.workers.channel import METRICS, READINESS, Ask, Channel, WorkerReply
from proxy.server.workers.link import WorkerLink, readiness_page

BALANCE: Any = None
"""The link hands it on, and does not use it."""


def sources() -> Any:
    """Sources of a worker that is not ready; a mock, because the others have a whole process behind them."""
    readiness = SimpleNamespace(problems=lambda: ["starting"], warnings=lambda: ["old file"])
    return SimpleNamespace(readiness=readiness, certificates=SimpleNamespace(days_left=lambda: {"a": 1.5}))


async def settle() -> None:
    """Let the loop close what is closing."""
    for _ in range(5):
        await asyncio.sleep(0)


async def ask(supervisor: Channel, number: int, what: str) -> WorkerReply:
    supervisor.send(Ask(number, what))
    reply = await supervisor.receive()
    assert isinstance(reply, WorkerReply)
    return reply


async def test_it_replies_until_the_supervisor_is_gone() -> None:
    end, far = socket.socketpair()
    supervisor = await Channel.over(far)
    link = WorkerLink(1, end, BALANCE)
    stop = asyncio.Event()
    running = asyncio.ensure_future(link.run(stop.set))
    for what in (READINESS, METRICS):
        assert await ask(supervisor, 1, what) == WorkerReply(1, b""), "it cannot tell yet"
    link._sources = sources()  # serve() would also take pages, which need a whole process
    assert await ask(supervisor, 2, READINESS) == WorkerReply(2, readiness_page(sources()))
    supervisor.close()
    await asyncio.wait_for(stop.wait(), 30)
    await running
    await link.close()
    await settle()


def test_the_page_of_readiness_has_problems_warnings_and_certificates() -> None:
    assert readiness_page(sources()) == b'[["starting"],["old file"],{"a":1.5}]'


async def test_a_link_that_never_ran_can_be_closed() -> None:
    end, far = socket.socketpair()
    with end, far:
        await WorkerLink(1, end, BALANCE).close()
