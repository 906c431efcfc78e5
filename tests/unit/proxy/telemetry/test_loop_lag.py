"""LoopLag: delays by size, and those of a real event loop."""

import asyncio
import time
from bisect import bisect_left

import pytest

from proxy.telemetry.loop_lag import (
    BOUNDS,
    IDLE_INTERVAL_SECONDS,
    IDLE_PART,
    INTERVAL_SECONDS,
    LATE_SECONDS,
    LoopLag,
    next_interval,
)


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


def test_an_idle_loop_is_measured_less_often_up_to_once_a_second() -> None:
    intervals = [INTERVAL_SECONDS]
    for _ in range(5):
        intervals.append(next_interval(intervals[-1], IDLE_PART * intervals[-1], LATE_SECONDS))
    assert intervals == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.parametrize(
    ("used", "delay"),
    [
        pytest.param(0.006, 0.0, id="a loop that works"),
        pytest.param(0.0, 0.011, id="a loop without CPU time"),
    ],
)
def test_after_work_or_a_late_timer_the_interval_is_the_shortest(used: float, delay: float) -> None:
    assert next_interval(IDLE_INTERVAL_SECONDS, used, delay) == INTERVAL_SECONDS


async def test_the_timer_of_an_idle_event_loop_is_due_ever_later() -> None:
    lag = LoopLag(cpu_seconds=lambda: 0.0)
    loop = asyncio.get_running_loop()
    since = loop.time()
    measuring = asyncio.ensure_future(lag.run())
    while sum(lag.counts) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    measuring.cancel()
    late = sum(lag.counts[bisect_left(BOUNDS, LATE_SECONDS) + 1 :])
    assert late or loop.time() - since > 6 * INTERVAL_SECONDS
