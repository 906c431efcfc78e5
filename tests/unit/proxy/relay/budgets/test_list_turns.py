"""ListTurns: whose list goes to a broker next, and when a turn ends."""

from collections.abc import Callable

import pytest

from proxy.relay.budgets.list_debts import LineKey
from proxy.relay.budgets.list_turns import (
    LINES_AT_MOST,
    LONGEST_SECONDS,
    ListTurn,
    ListTurns,
    work_seconds,
)

MOST = 100
LONG = 10.0
ALICE: LineKey = (1, ("alice", ""))
BOB: LineKey = (1, ("bob", ""))
ALICE_AT_2: LineKey = (2, ("alice", ""))


class Lists:
    """The turns of a process."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        """What is called in the next turn of the event loop."""
        self.turns = ListTurns(MOST, self.calls.append)
        self.woken: list[ListTurn] = []

    def join(self, size: int, key: LineKey = ALICE, now: float = 0.0) -> ListTurn:
        turn = self.turns.join(key, size, now)
        turn.wake = lambda: self.woken.append(turn)
        return turn

    def next_turn(self) -> list[ListTurn]:
        """Run what is due; return which lists have been woken."""
        self.woken.clear()
        calls = list(self.calls)
        self.calls.clear()
        for call in calls:
            call()
        return list(self.woken)


@pytest.fixture
def lists() -> Lists:
    return Lists()


def begins(turn: ListTurn, now: float = 0.0, longest: float = LONG) -> bool:
    return turn.ask(longest, now) == 0.0


def test_one_list_goes_whatever_its_size_and_the_next_waits_for_its_response(lists: Lists) -> None:
    one = lists.join(1000)
    assert begins(one)
    other = lists.join(1)
    assert not begins(other)
    assert lists.next_turn() == []
    one.end()
    assert lists.next_turn() == [other]
    assert begins(other)


def test_several_lists_go_as_long_as_they_are_small_together(lists: Lists) -> None:
    one, other, third = lists.join(40), lists.join(60), lists.join(40)
    assert begins(one)
    assert begins(other)
    assert not begins(third)
    one.end()
    assert begins(third)


def test_other_clients_and_other_brokers_have_their_own_turns(lists: Lists) -> None:
    assert begins(lists.join(1000))
    assert begins(lists.join(1000, ALICE_AT_2))
    assert begins(lists.join(1000, BOB))
    assert not begins(lists.join(1))


def test_lists_go_in_the_order_in_which_they_came(lists: Lists) -> None:
    first, large, small = lists.join(50), lists.join(80), lists.join(10)
    assert begins(first)
    assert not begins(large)
    assert not begins(small), "there would be room"
    lists.next_turn()
    first.end()
    assert lists.next_turn() == [large]
    assert not begins(small)
    assert begins(large)
    assert lists.next_turn() == [small]
    assert begins(small)


def test_a_list_that_stops_waiting_delays_nobody(lists: Lists) -> None:
    first, gone, other = lists.join(MOST), lists.join(1), lists.join(1)
    assert begins(first)
    assert not begins(other)
    lists.next_turn()
    first.end()
    gone.leave()
    assert lists.next_turn() == [other]
    assert begins(other)


def test_a_turn_ends_without_a_response(lists: Lists) -> None:
    one, other, third = lists.join(1000), lists.join(1000), lists.join(1)
    assert begins(one, longest=2.0)
    assert other.ask(LONG, 0.5) == 1.5
    assert begins(other, 2.0)
    one.end()  # its response comes later
    assert third.ask(LONG, 2.0) == LONG, "the turn of another has not ended with it"


def test_a_list_that_is_not_the_first_ends_turns_too(lists: Lists) -> None:
    """The first one may not ask for long, because it waits for a quota."""
    one, first, other = lists.join(MOST), lists.join(1), lists.join(1)
    assert begins(one, longest=2.0)
    assert not begins(first)
    lists.next_turn()
    assert other.ask(LONG, 1.0) == LONGEST_SECONDS
    assert lists.next_turn() == []
    other.ask(LONG, 2.0)
    assert lists.next_turn() == [first]
    first.end()
    assert lists.next_turn() == [other]


def test_the_turn_of_a_closed_connection_lasts_as_long_as_the_broker_needs(lists: Lists) -> None:
    size = 100_000
    needed = work_seconds(size)
    large, other, third = lists.join(size), lists.join(1), lists.join(MOST)
    assert begins(large)
    large.leave()
    assert other.ask(LONG, 0.0) == pytest.approx(needed)
    assert begins(other, needed)
    assert not begins(third, needed)
    other.leave()
    assert begins(third, needed + work_seconds(1)), "a small list needs less"


def test_a_list_is_woken_once_until_it_asks(lists: Lists) -> None:
    one, other, waiting = lists.join(50), lists.join(50), lists.join(MOST)
    assert begins(one)
    assert begins(other)
    lists.next_turn()
    assert not begins(waiting)
    one.end()
    other.end()
    assert lists.next_turn() == [waiting]


def test_without_an_event_loop_lists_ask_themselves() -> None:
    turns = ListTurns(MOST)
    one, other = turns.join(ALICE, MOST, 0.0), turns.join(ALICE, 1, 0.0)
    assert begins(one)
    other.wake = one.end
    one.end()
    assert begins(other)


def test_nothing_is_kept_of_clients_without_lists(lists: Lists) -> None:
    first, other = lists.join(MOST), lists.join(1)
    assert begins(first)
    assert not begins(other)
    assert lists.turns.lines == 1
    first.end()
    first.end()
    other.end()
    assert lists.turns.lines == 0


def test_little_is_kept_of_clients_that_have_closed_their_connections(lists: Lists) -> None:
    for number in range(3 * LINES_AT_MOST):
        turn = lists.join(1, (1, (f"user {number}", "")), number * 0.01)
        assert begins(turn, number * 0.01)
        turn.leave()
    assert lists.turns.lines <= LINES_AT_MOST
    busy = [lists.join(1, (1, (f"busy {number}", "")), 1000.0) for number in range(3 * LINES_AT_MOST)]
    assert all(begins(turn, 1000.0) for turn in busy)
    assert lists.turns.lines == len(busy)


def test_a_list_waits_until_those_before_it_are_paid(lists: Lists) -> None:
    one, other = lists.join(1000), lists.join(1)
    assert begins(one)
    one.end()
    one.owe(1.5, 100.0, 10.0)
    assert other.ask(LONG, 10.0) == LONGEST_SECONDS, "the client may have closed its connection meanwhile"
    assert other.ask(LONG, 11.0) == 0.5
    assert begins(other, 11.5)
    assert begins(lists.join(1, BOB), 10.0)
