import asyncio

import pytest

from proxy.server.system.stop_requests import StopRequests


@pytest.mark.parametrize(
    ("requests", "first", "second"), [(0, False, False), (1, True, False), (2, True, True)]
)
async def test_each_request_has_its_event(requests: int, first: bool, second: bool) -> None:
    stop = StopRequests()
    for _ in range(requests):
        stop.request()
    assert (stop.first.is_set(), stop.second.is_set()) == (first, second)


async def test_a_second_request_ends_the_delay() -> None:
    stop = StopRequests()
    stop.request()
    delay = asyncio.ensure_future(stop.delay(3600.0))
    await asyncio.sleep(0)
    assert not delay.done()
    stop.request()
    await delay


async def test_the_delay_ends_by_itself() -> None:
    stop = StopRequests()
    stop.request()
    await stop.delay(0.001)
    assert not stop.second.is_set()
