"""When requests are sent, and from when their latency counts; the clock is a number."""

from typing import cast

import pytest

from bench.load.client import Client, LoadError
from bench.load.poller import Poller
from bench.load.schedule import Schedule


class World:
    """Clock, poller and one client: every request gets its response `delay` seconds after it was offered."""

    def __init__(self, delay: float) -> None:
        self.now = 100.0
        self.delay = delay
        self.stall_until = 0.0
        self.in_flight: list[tuple[float, float]] = []
        self.most_in_flight = 0
        self.dues: list[float] = []
        self.schedule = Schedule(cast("Poller", self), lambda: self.now)

    def offer(self, due: float) -> None:
        self.dues.append(due)
        self.in_flight.append((max(self.now + self.delay, self.stall_until), due))
        self.most_in_flight = max(self.most_in_flight, len(self.in_flight))

    def wait(self, seconds: float) -> int:
        if not self.in_flight or self.in_flight[0][0] > self.now + seconds:
            self.now += seconds
            return 0
        response_at, due = self.in_flight.pop(0)
        self.now = max(self.now, response_at)
        self.schedule.on_response(cast("Client", self), due)
        return 1

    def wait_until_due(self, seconds: float) -> None:
        self.wait(max(seconds, 0.0))


def test_the_closed_loop_keeps_its_depth() -> None:
    world = World(delay=0.5)
    world.schedule.closed_loop([cast("Client", world)], requests=10, depth=3)
    assert len(world.dues) == len(world.schedule.latencies) == 10
    assert world.most_in_flight == 3
    assert max(world.schedule.latencies) == pytest.approx(0.5)


def test_the_open_loop_sends_on_time_whatever_is_in_flight() -> None:
    world = World(delay=2.0)
    world.schedule.open_loop([cast("Client", world)], requests=8, rate=4.0)
    assert world.dues == [100.0 + number / 4 for number in range(8)]
    assert list(world.schedule.latencies) == pytest.approx([2.0] * 8)


def test_the_open_loop_counts_a_stall_for_all_that_was_due_meanwhile() -> None:
    world = World(delay=0.0)
    world.stall_until = 101.0
    world.schedule.open_loop([cast("Client", world)], requests=8, rate=4.0)
    assert list(world.schedule.latencies) == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0])


def test_no_response_is_an_error_that_says_how_far_it_came() -> None:
    world = World(delay=1000.0)
    with pytest.raises(LoadError, match=r"\b0 of 10\b"):
        world.schedule.closed_loop([cast("Client", world)], requests=10, depth=3)
