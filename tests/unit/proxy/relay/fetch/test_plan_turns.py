"""PlanTurns: the connections of a client plan in turn."""

import pytest

from proxy.quota.identity import Identity
from proxy.relay.fetch.plan_turns import (
    CLIENTS_AT_MOST,
    PAUSE_SECONDS_PER_PARTITION,
    SECONDS_PER_PARTITION,
    SHORT_SECONDS,
    ConnectionTurns,
    PlanTurns,
)

ALICE = Identity("alice", "a", "10.0.0.1")
PARTITIONS = 10_000
SECONDS = PARTITIONS * SECONDS_PER_PARTITION


def test_the_connections_of_a_client_take_turns() -> None:
    turns = PlanTurns()
    taken = [turns.take(ALICE, PARTITIONS, 5.0) for _ in range(3)]
    assert taken == pytest.approx([5.0, 5.0 + SECONDS, 5.0 + 2 * SECONDS])
    # Another client id and address are the same client; nobody else waits.
    assert turns.take(Identity("alice", "b", "10.0.0.2"), 1, 5.0) == pytest.approx(5.0 + 3 * SECONDS)
    assert turns.take(Identity("bob", "a", "10.0.0.1"), PARTITIONS, 5.0) == 5.0


def test_clients_without_a_principal_are_told_apart_by_their_addresses() -> None:
    turns = PlanTurns()
    first, second = (Identity("ANONYMOUS", "", address) for address in ("10.0.0.1", "10.0.0.2"))
    assert [turns.take(who, PARTITIONS, 0.0) for who in (first, second)] == [0.0, 0.0]
    assert turns.take(first, 1, 0.0) > 0.0


def test_small_plans_wait_only_if_there_are_many() -> None:
    turns = PlanTurns()
    waits = [turns.take(ALICE, 10, 0.0) > 0.0 for _ in range(1000)]
    assert waits[:100] == [False] * 100
    assert waits[-1]


def test_a_turn_that_is_not_used_is_given_back() -> None:
    turns = PlanTurns()
    turns.take(ALICE, PARTITIONS, 0.0)
    turns.take(ALICE, PARTITIONS, 0.0)
    turns.give_back(ALICE, PARTITIONS)
    assert turns.take(ALICE, PARTITIONS, 0.0) == pytest.approx(SECONDS)
    turns.give_back(Identity("bob", "", ""), 1)
    assert turns.take(Identity("bob", "", ""), 1, 0.0) == 0.0


def test_clients_whose_turn_has_come_are_forgotten() -> None:
    turns = PlanTurns()
    for number in range(3 * CLIENTS_AT_MOST):
        turns.take(Identity(f"user-{number}", "", ""), PARTITIONS, float(number))
    assert len(turns._free_at) <= CLIENTS_AT_MOST


def test_a_connection_takes_one_turn_until_it_is_used() -> None:
    turns = PlanTurns()
    turns.take(ALICE, PARTITIONS, 0.0)
    connection = ConnectionTurns(turns)
    assert [connection.next_at(ALICE, PARTITIONS, now) for now in (0.0, 0.01)] == [SECONDS] * 2
    connection.use()
    assert connection.next_at(ALICE, PARTITIONS, 0.01) == pytest.approx(2 * SECONDS)


def test_a_connection_gives_back_the_turn_that_it_has_not_used() -> None:
    turns = PlanTurns()
    used, unused = ConnectionTurns(turns), ConnectionTurns(turns)
    used.next_at(ALICE, PARTITIONS, 0.0)
    used.use()
    unused.next_at(ALICE, PARTITIONS, 0.0)
    for connection in (used, unused, unused):
        connection.end()
    assert turns.take(ALICE, 1, 0.0) == pytest.approx(SECONDS)


@pytest.mark.parametrize(("partitions", "pauses"), [(0, False), (499, False), (500, True), (10_000, True)])
def test_a_connection_pauses_after_a_large_plan(partitions: int, pauses: bool) -> None:
    connection = ConnectionTurns(PlanTurns())
    connection.planned(PARTITIONS, 5.0)
    connection.planned(partitions, 7.0)
    until = 7.0 + partitions * PAUSE_SECONDS_PER_PARTITION if pauses else 0.0
    assert connection.pause_until == pytest.approx(until)
    assert connection.next_at(ALICE, 1, 7.0) == pytest.approx(max(until, 7.0))
    assert pytest.approx(500 * PAUSE_SECONDS_PER_PARTITION) == SHORT_SECONDS
