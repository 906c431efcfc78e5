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


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    """One of the two loops, which the test runs itself."""
    loop = LOOPS[request.param]()
    yield loop
    loop.close()
