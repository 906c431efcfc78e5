"""Event loops: what the proxy serves has to work on asyncio's own loop and on uvloop."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import pytest
import uvloop

LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
END_SECONDS: Final = 30
CLOSING_TURNS: Final = 3
"""A transport closes its socket in the turn after close()."""


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    """One of the two loops, which the test runs itself."""
    loop = LOOPS[request.param]()
    yield loop
    loop.run_until_complete(_handlers_end())
    loop.close()


async def _handlers_end() -> None:
    """Wait for the handlers of connections. A stand-in for a broker may hear of an end later than the test,
    and nothing would close its socket after the end of the loop.
    """
    async with asyncio.timeout(END_SECONDS):
        while running := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(running)
    for _ in range(CLOSING_TURNS):
        await asyncio.sleep(0)
