"""LoopLag: delays by size, and those of a real event loop."""

import asyncio
import time

from proxy.telemetry.loop_lag import BOUNDS, INTERVAL_SECONDS, LoopLag


def test_a_delay_counts_in_the_smallest_bucket_that_contains_it() -> None:
    lag = LoopLag()
    for delay in (-0.001, BOUNDS[0], 0.0011, BOUNDS[-1], 60.0):
        lag.note(delay)
    assert lag.counts == [2, 1, *[0] * (len(BOUNDS) - 3), 1, 1]
    assert lag.total_seconds == BOUNDS[0] + 0.0011 + BOUNDS[-1] + 60.0


async def test_an_event_loop_that_stands_still_is_late() -> None:
    lag = LoopLag()
    measuring = asyncio.ensure_future(lag.run())
    await asyncio.sleep(0)
    time.sleep(INTERVAL_SECONDS + 0.3)  # noqa: ASYNC251
    while not sum(lag.counts):  # noqa: ASYNC110
        await asyncio.sleep(0)
    measuring.cancel()
    assert lag.total_seconds >= 0.3
