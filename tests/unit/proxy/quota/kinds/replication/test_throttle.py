import math
from typing import Unpack

import pytest

from proxy.quota.kinds.replication.throttle import LEADER, Throttle
from proxy.quota.limits.enforcement import PACE, UNLIMITED, WINDOW
from proxy.quota.limits.limits import Limits
from tests.support.quotas.enforcement import EnforcementOptions, enforcement
from tests.support.sharing.members import a_quarter

RATE = 1000.0


def throttle(
    limit: float = RATE, algorithm: str = PACE, now: float = 0.0, **settings: Unpack[EnforcementOptions]
) -> Throttle:
    made = Throttle(LEADER, 1)
    made.configure(limit, Limits({}, settings=enforcement(algorithm=algorithm, **settings)), now)
    return made


def test_a_second_may_come_at_once_and_then_the_limit() -> None:
    one = throttle()
    assert one.allowance(0.0) == RATE
    one.record(1000, False, 0.0)
    assert one.over(0.0)
    ready_at = one.ready_at(100.0, 0, 0.0)
    assert ready_at == pytest.approx(0.1, abs=1e-5)
    assert one.lacks(100.0, 0, 0.099)
    assert not one.lacks(100.0, 0, ready_at)


def test_a_batch_larger_than_the_burst_needs_half_of_the_burst() -> None:
    one = throttle()
    one.record(1000, False, 0.0)
    assert one.lacks(1e6, 0, 0.49)
    assert not one.lacks(1e6, 0, 0.5)


def test_a_step_is_left_for_connections_that_have_waited_longer() -> None:
    one = throttle()
    one.record(850, False, 0.0)
    assert not one.lacks(100.0, 1, 0.0)
    assert one.lacks(100.0, 2, 0.0)
    assert one.for_others(2) == 100.0
    assert one.for_others(100) == 400.0, "a connection that waits for ever does not stop the others"


@pytest.mark.parametrize(("ahead", "left"), [(0, 250), (2, 350), (5, 500), (100, 500)])
def test_there_are_bytes_to_spare_from_a_quarter_of_the_burst_on(ahead: int, left: int) -> None:
    one = throttle()
    assert one.has_spare(ahead, 0.0)
    one.record(1001 - left, False, 0.0)
    assert not one.has_spare(ahead, 0.0)
    assert one.has_spare(ahead, 0.002)


def test_what_is_reserved_is_still_to_spare() -> None:
    one = throttle()
    one.reserve(900, 0.0)
    assert one.has_spare(0, 0.0)
    one.reserve(-900, 0.0)
    one.record(900, False, 0.0)
    assert not one.has_spare(0, 0.0)


def test_without_a_burst_there_is_nothing_to_spare() -> None:
    assert not throttle(burst_seconds=0.0).has_spare(0, 10.0)
    assert not throttle(UNLIMITED).has_spare(0, 0.0)
    assert not throttle(algorithm=WINDOW).has_spare(0, 0.0)


def test_a_reservation_counts_until_it_is_released() -> None:
    one = throttle()
    one.reserve(1000, 0.0)
    assert one.over(0.0)
    assert (one.total_bytes, one.rate(0.0)) == (0, 0.0)
    one.reserve(-1000, 0.0)
    one.record(300, False, 0.0)
    assert one.allowance(0.0) == 700.0
    assert one.total_bytes == 300


def test_a_debt_is_forgotten_beyond_the_windows() -> None:
    one = throttle()
    one.record(10**9, True, 0.0)
    assert one.allowance(0.0) == -11 * RATE
    assert one.in_sync_rate(0.0) == 1e9


def test_the_rate_is_kafkas_simple_rate() -> None:
    one = throttle()
    for at in range(10):
        one.record(500, False, float(at))
    assert one.rate(10.0) == 500.0
    assert one.in_sync_rate(10.0) == 0.0


def test_a_new_limit_counts_at_once() -> None:
    one = throttle()
    one.record(1500, False, 0.0)
    one.configure(100.0, Limits({}), 0.0)
    assert one.ready_at(10.0, 0, 0.0) == pytest.approx(5.1, abs=1e-4)
    one.configure(10_000.0, Limits({}), 0.0)
    assert one.ready_at(1000.0, 0, 0.0) == pytest.approx(0.15, abs=1e-4)


def test_a_limit_of_zero_stops() -> None:
    one = throttle(0.0)
    assert one.lacks(1.0, 0, 1e6)
    assert one.ready_at(1.0, 0, 7.0) > 7.0
    window = throttle(0.0, WINDOW)
    assert window.lacks(1.0, 0, 1e6)


def test_no_limit() -> None:
    one = throttle(UNLIMITED)
    one.record(10**9, False, 0.0)
    assert one.allowance(0.0) == math.inf
    assert not one.lacks(1e9, 5, 0.0)


def test_a_window_allows_everything_until_it_is_over_the_limit() -> None:
    one = throttle(algorithm=WINDOW)
    assert one.allowance(0.0) == math.inf
    one.record(4000, False, 0.0)
    assert one.over(0.0)
    assert one.lacks(1.0, 0, 3.9)
    assert 0.0 < one.ready_at(1.0, 0, 0.0) <= 0.5
    assert not one.lacks(1.0, 0, 4.0), "4000 bytes in 4 seconds are the limit"


def test_other_windows() -> None:
    one = throttle(algorithm=WINDOW, replication_samples=2, replication_window_seconds=2.0)
    one.record(3000, False, 0.0)
    assert one.over(1.0)
    assert not one.over(4.0), "forgotten after two windows of two seconds"


def test_throttled_seconds_are_counted_while_a_follower_fetches() -> None:
    one = throttle(now=100.0)
    for at in (100.0, 100.1, 100.2):
        one.count_omission(at)
    one.count_omission(200.0)
    assert one.throttled_seconds == pytest.approx(0.5 + 0.1 + 0.1 + 0.5)


def test_a_limit_that_is_set_begins_with_its_part_of_a_shared_limit() -> None:
    """Also one that is set again; a limit that changes keeps the part that the process has now."""
    limits = Limits({}, settings=enforcement(algorithm=PACE))
    one = throttle(UNLIMITED)
    one.first_parts = a_quarter()
    for _ in range(2):
        one.configure(RATE, limits, 0.0)
        assert (one.limit, one.whole_limit) == (250.0, RATE)
        assert one.allowance(0.0) == 250.0, "its first burst is a part, too"
        one.bucket.share(0.5, 0.0)
        one.configure(2 * RATE, limits, 0.0)
        assert one.limit == RATE
        one.configure(UNLIMITED, limits, 0.0)
