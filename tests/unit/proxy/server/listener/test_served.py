import asyncio
from itertools import count

from proxy.server.listener.served import until_served


async def test_the_wait_ends_when_clients_are_served() -> None:
    asked = count()
    await until_served(lambda: next(asked) == 2, 60.0)
    assert next(asked) == 3


async def test_the_wait_ends_after_its_time() -> None:
    await asyncio.wait_for(until_served(lambda: False, 0.03), 60.0)


async def test_without_time_nothing_waits() -> None:
    asked = count()
    await until_served(lambda: next(asked) > 99, 0.0)
    assert next(asked) == 1
