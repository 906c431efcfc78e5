"""Checks of rates allow for pauses of the machine, and for no more than these explain."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.kafka.rates import check_even, check_fives
from tests.support.kafka.replication_throttles import even
from tests.support.process.pauses import Pauses
from tests.support.waiting import wait_until

QUOTA = 100


def test_a_pause_counts() -> None:
    with Pauses() as pauses:
        before = pauses.seconds
        os.kill(pauses.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pauses.pid, os.WSTOPPED)
        stopped = time.monotonic()
        wait_until(lambda: time.monotonic() > stopped + 0.3, "a pause")
        os.kill(pauses.pid, signal.SIGCONT)
        wait_until(lambda: pauses.seconds >= before + 0.3, "its length")
        known = pauses.seconds
    assert pauses.seconds >= known


@pytest.mark.parametrize(
    ("check", "rates"),
    [
        (check_even, [100, 60, 140, *[100] * 8]),
        (check_even, [60, *[100] * 10]),
        (check_fives, [*[100] * 5, 140, *[100] * 5]),
        (even, [60, 100]),
        (even, [50, 150]),
        (even, [*[100] * 5, *[130] * 5]),
    ],
)
def test_a_pause_explains_its_length(check: Callable[..., Any], rates: list[int]) -> None:
    def passes(pauses: float) -> bool:
        try:
            check(rates, QUOTA, pauses)
        except AssertionError:
            return False
        return True

    assert not passes(0.0)
    assert not passes(0.05)
    assert passes(2.0)
    check([QUOTA] * len(rates), QUOTA, 0.0)
