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


def test_some_have_gone_when_two_looks_find_fewer() -> None:
    waiting = WaitingConnections()
    counts(waiting, [9] * 30, 0.0)
    assert counts(waiting, [1, 1, 0, 0], 6.0) == [9, 1, 1, 0]


def test_those_that_a_look_has_found_meanwhile_have_not_gone() -> None:
    waiting = WaitingConnections()
    counts(waiting, [9] * 30, 0.0)
    assert counts(waiting, [4, 1, 1, 1], 6.0) == [9, 4, 1, 1]


def test_at_first_the_most_of_nearly_a_second_count() -> None:
    assert counts(WaitingConnections(), [4, 1, 1, 1, 1, 1], 5.0) == [4, 4, 4, 4, 1, 1]


def test_connections_that_seldom_wait_all_at_once_count_all_the_same() -> None:
    """The count decreases once. Then the pause is known."""
    waiting = WaitingConnections()
    counts(waiting, [4] * 30, 0.0)
    found = counts(waiting, [3, 3, 4] * 20, 6.0)
    assert found[:3] == [4, 3, 4]
    assert found[3:] == [4] * 57


def test_fewer_that_wait_again_show_a_pause_too() -> None:
    waiting = WaitingConnections()
    counts(waiting, [4] * 30, 0.0)
    assert counts(waiting, [0, 0, 0, 3, 0, 0, 3], 6.0) == [4, 0, 0, 4, 4, 3, 3]


def test_all_have_gone_when_two_looks_find_none_although_the_most_are_seldom_found() -> None:
    waiting = WaitingConnections()
    counts(waiting, [4, 3] * 20, 0.0)
    assert counts(waiting, [0, 0], 8.0) == [4, 0]


def test_connections_that_one_look_in_two_finds_have_gone_when_three_find_none() -> None:
    waiting = WaitingConnections()
    counts(waiting, [1, 0] * 20, 0.0)
    assert counts(waiting, [0, 0], 8.0) == [1, 0]
