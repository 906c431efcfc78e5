"""Checks of rates allow for pauses of the machine, and for no more than these explain."""

import os
import signal
import time
from collections.abc import Callable, Sequence

import pytest

from tests.support.kafka.rates import check_even, check_fives
from tests.support.kafka.replication_throttles import even
from tests.support.process.pauses import Pauses
from tests.support.waiting import wait_until

QUOTA = 100


def passes(check: Callable[[], None]) -> bool:
    try:
        check()
    except AssertionError:
        return False
    return True


def test_without_a_pause_nothing_counts() -> None:
    """The machine may pause while the process that sleeps starts; then another one is tried."""

    def counts_nothing() -> bool:
        with Pauses() as pauses:
            return pauses.seconds == 0.0

    wait_until(counts_nothing, "a moment without a pause")


def test_a_pause_counts_where_it_was() -> None:
    with Pauses() as pauses:
        before = pauses.seconds
        os.kill(pauses.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pauses.pid, os.WSTOPPED)
        stopped, wall = time.monotonic(), time.time()
        wait_until(lambda: time.monotonic() > stopped + 0.3, "a pause")
        os.kill(pauses.pid, signal.SIGCONT)
        wait_until(lambda: pauses.seconds >= before + 0.3, "its length")
        known = pauses.seconds
    assert pauses.seconds >= known
    assert sum(pauses.by_second(stopped - 1, 5)) == pytest.approx(pauses.seconds)
    assert sum(pauses.by_second(wall - 1, 5, time.time)) == pytest.approx(pauses.seconds, abs=0.1)
    assert pauses.by_second(stopped + 0.1, 1)[1] >= 0.19
    assert pauses.by_second(stopped + 0.2, 1)[0] >= 0.19, "in the second before"
    assert pauses.by_second(stopped - 9, 5) == [0.0] * 6


@pytest.mark.parametrize("check", [check_even, check_fives])
@pytest.mark.parametrize(
    "rates", [[100, 60, 140, *[100] * 8], [60, *[100] * 10], [*[100] * 5, 140, *[100] * 5]]
)
def test_a_pause_explains_the_seconds_around_it(
    check: Callable[[Sequence[int], float, Sequence[float]], None], rates: list[int]
) -> None:
    least, most = min(rates), max(rates)
    second = rates.index(least if least < QUOTA else most)

    def explained(pause: float, at: int) -> bool:
        pauses = [0.0] * (len(rates) + 1)
        pauses[at + 1] = pause
        return passes(lambda: check(rates, QUOTA, pauses))

    over = check is check_even or most > QUOTA
    assert explained(0.0, 0) != over
    assert explained(0.05, second) != over
    assert explained(0.4, second)
    check([QUOTA] * len(rates), QUOTA, [0.0] * (len(rates) + 1))


@pytest.mark.parametrize("check", [check_even, check_fives])
def test_a_pause_long_before_explains_nothing(
    check: Callable[[Sequence[int], float, Sequence[float]], None],
) -> None:
    rates = [*[100] * 8, 140, *[100] * 20]
    for second, expected in ((0, False), (7, True), (8, True), (14, False)):
        pauses = [0.0] * (len(rates) + 1)
        pauses[second + 1] = 0.4
        assert passes(lambda pauses=pauses: check(rates, QUOTA, pauses)) == expected, second


@pytest.mark.parametrize("rates", [[60, 100], [50, 150], [*[100] * 5, *[130] * 5]])
def test_a_pause_explains_its_length(rates: list[float]) -> None:
    assert not passes(lambda: even(rates, QUOTA, 0.0))
    assert not passes(lambda: even(rates, QUOTA, 0.05))
    assert passes(lambda: even(rates, QUOTA, 2.0))
    even([QUOTA] * len(rates), QUOTA, 0.0)
