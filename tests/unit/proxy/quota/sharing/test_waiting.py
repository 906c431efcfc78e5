"""How many connections count as waiting between their requests."""

import pytest

from proxy.quota.sharing.waiting import WaitingConnections


def counts(waiting: WaitingConnections, seen: list[int], now: float, interval: float = 0.2) -> list[int]:
    """The count after each look, at even intervals."""
    found = []
    for number, each in enumerate(seen):
        waiting.see(each, now + number * interval)
        found.append(waiting.count)
    return found


def test_nothing_counts_before_a_wait() -> None:
    assert counts(WaitingConnections(), [0, 0], 5.0) == [0, 0]


@pytest.mark.parametrize("now", [-3600.0, 0.0, 1e6])
def test_at_first_a_connection_counts_for_the_longest_pause(now: float) -> None:
    assert counts(WaitingConnections(), [3, 0, 0, 0, 0, 0, 0], now) == [3, 3, 3, 3, 3, 3, 0]


def test_connections_that_always_wait_have_gone_when_two_looks_find_none() -> None:
    waiting = WaitingConnections()
    counts(waiting, [4] * 30, 0.0)
    assert counts(waiting, [0, 0], 6.0) == [4, 0]


def test_connections_that_pause_count_for_as_long_as_they_do() -> None:
    waiting = WaitingConnections()
    counts(waiting, [4, 0, 0] * 20, 0.0)
    assert counts(waiting, [4, 0, 0, 0, 0, 0, 0], 12.0) == [4, 4, 4, 4, 4, 0, 0]


def test_a_single_long_pause_is_forgotten() -> None:
    waiting = WaitingConnections()
    counts(waiting, [4, 0, 0, 0, *[4] * 30], 0.0)
    assert counts(waiting, [0, 0], 34 * 0.2) == [4, 0]


def test_new_demand_after_a_time_without_any_is_no_pause() -> None:
    waiting = WaitingConnections()
    counts(waiting, [1] * 30, 0.0)
    counts(waiting, [0] * 20, 6.0)
    counts(waiting, [1, 1], 10.0)
    assert counts(waiting, [0, 0], 10.4) == [1, 0]


def test_the_most_of_the_last_second_count_while_others_wait() -> None:
    waiting = WaitingConnections()
    counts(waiting, [4] * 10, 0.0)
    assert counts(waiting, [1] * 7, 2.0) == [4, 4, 4, 4, 4, 1, 1]
