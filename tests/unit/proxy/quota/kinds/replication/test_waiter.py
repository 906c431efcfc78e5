import pytest

from proxy.quota.kinds.replication.starts_at_once import FETCHES
from proxy.quota.kinds.replication.waiter import MOST_PAUSE_SECONDS, Waiter


def test_replicas_start_one_by_one() -> None:
    """The pause after a start is as long as the follower took over it."""
    waiter = Waiter(0.0)
    assert waiter.starts(10.0, spare=False) == 1
    waiter.start(10.0)
    assert waiter.starts(10.1, spare=True) == 0
    waiter.fetches(10.2)
    assert waiter.starts(10.3, spare=False) == 0
    assert waiter.start_at(10.3) == pytest.approx(10.4)
    assert waiter.starts(10.4, spare=False) == 1


def test_there_is_no_pause_while_the_throttle_has_bytes_to_spare() -> None:
    waiter = Waiter(0.0)
    waiter.start(10.0)
    waiter.began(1)
    waiter.fetches(10.2)
    assert waiter.starts(10.2, spare=True) == 1
    assert waiter.starts(10.2, spare=False) == 0


def test_several_start_with_one_fetch_if_that_takes_no_longer() -> None:
    waiter, now, found = Waiter(0.0), 10.0, []
    for _ in range(4 * FETCHES + 1):
        found.append(waiter.starts(now, spare=True))
        assert waiter.starts(now + 10.0, spare=False) == 1
        for _ in range(found[-1]):
            waiter.start(now)
        waiter.began(found[-1])
        now += 0.05
        waiter.fetches(now)
    assert found[::FETCHES] == [1, 2, 4, 8, 16]


def test_a_start_that_brings_nothing_says_nothing() -> None:
    waiter = Waiter(0.0)
    for now in (10.0, 11.0, 12.0):
        waiter.start(now)
        waiter.fetches(now)
    assert waiter.starts(13.0, spare=True) == 1


def test_a_slow_follower_starts_two_replicas_per_second() -> None:
    waiter = Waiter(0.0)
    waiter.start(10.0)
    waiter.fetches(20.0)
    assert waiter.start_at(20.0) == 20.0 + MOST_PAUSE_SECONDS


def test_a_fetch_without_a_start_makes_no_pause() -> None:
    waiter = Waiter(0.0)
    waiter.fetches(10.0)
    assert waiter.starts(10.0, spare=False) == 1
    assert waiter.start_at(10.0) == 10.0
