"""The order of replicas that wait. tests/property/test_replication_plans.py has whole plans."""

import pytest

from proxy.quota.fetch.follower_plan import FollowerItem
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER, Throttle
from proxy.quota.kinds.replication.waiting_replicas import WaitingReplicas
from proxy.wire.fetch.rewrite import Watermarks

LEADERS = [Throttle(LEADER, 1)]
BOTH = [*LEADERS, Throttle(FOLLOWER, 2)]


def item(partition: int) -> FollowerItem:
    return FollowerItem("t", partition, 2, Watermarks())


@pytest.fixture
def items() -> list[FollowerItem]:
    return [item(partition) for partition in range(4)]


def order(waiting: WaitingReplicas) -> list[int]:
    """The partitions in the order in which they get bytes."""
    waiting.open()
    found = []
    while (queue := waiting.next()) is not None:
        first = queue.first
        found.append(first.partition)
        waiting.leave(first)
        queue.closed = not queue.places
    return found


def test_replicas_wait_in_the_order_in_which_they_joined_whatever_their_throttles(
    items: list[FollowerItem],
) -> None:
    waiting = WaitingReplicas()
    for each, throttles in zip(items, (LEADERS, BOTH, LEADERS, BOTH), strict=True):
        waiting.wait(each, throttles, False)
    assert len(waiting.queues) == 2
    assert waiting.size == 4
    assert order(waiting) == [0, 1, 2, 3]


def test_a_replica_keeps_its_place_until_it_leaves_or_its_queue_changes(items: list[FollowerItem]) -> None:
    waiting = WaitingReplicas()
    for each in items:
        waiting.wait(each, BOTH, True)
    waiting.wait(items[0], BOTH, True)
    waiting.wait(items[1], BOTH, False)
    waiting.leave(items[2])
    waiting.wait(items[2], BOTH, True)
    assert order(waiting) == [0, 3, 1, 2]


def test_a_closed_queue_gives_way_to_the_others(items: list[FollowerItem]) -> None:
    waiting = WaitingReplicas()
    for each, throttles in zip(items, (LEADERS, BOTH, LEADERS, BOTH), strict=True):
        waiting.wait(each, throttles, False)
    waiting.open()
    first = waiting.next()
    assert first is not None
    first.closed = True
    other = waiting.next()
    assert other is not None
    assert (first.throttles, other.first) == (LEADERS, items[1])


def test_those_that_wait_for_their_start_are_counted_and_the_first_of_them_is_found(
    items: list[FollowerItem],
) -> None:
    waiting = WaitingReplicas()
    waiting.wait(items[0], LEADERS, False)
    assert waiting.next_new() is None
    waiting.wait(items[1], BOTH, True)
    waiting.wait(items[2], LEADERS, True)
    assert waiting.new == 2
    queue = waiting.next_new()
    assert queue is not None
    assert queue.first is items[1]


def test_all_items_join_anew_those_that_waited_in_their_order(items: list[FollowerItem]) -> None:
    waiting = WaitingReplicas()
    for each in reversed(items[1:]):
        waiting.wait(each, LEADERS, False)
    waiting.leave(items[0])
    waiting.leave(items[2])
    assert waiting.start_anew() == [items[3], items[1], items[2], items[0]]
    assert waiting.size == 0


def test_an_item_that_is_dropped_is_neither_waiting_nor_known(items: list[FollowerItem]) -> None:
    waiting = WaitingReplicas()
    replica = Replica((2, "t", 0), 5.0)
    items[0].state = replica
    replica.enter(waiting, items[0])
    waiting.wait(items[0], LEADERS, False)
    waiting.again[items[0]] = None
    waiting.seen_at = 7.0
    waiting.drop(items[0])
    waiting.seen_at = 9.0
    assert (waiting.size, waiting.take_again(), waiting.start_anew()) == (0, [], [])
    assert replica.seen_at == 7.0, "the last plan in which the session had it"


def test_a_session_that_loses_a_replica_to_another_decides_anew(items: list[FollowerItem]) -> None:
    """A partition may be in the sessions with two leaders for a moment."""
    sessions = [WaitingReplicas(), WaitingReplicas()]
    replica = Replica((2, "t", 0), 5.0)
    replica.enter(sessions[0], items[0])
    replica.enter(sessions[0], items[0])
    assert sessions[0].take_again() == []
    replica.enter(sessions[1], items[1])
    assert sessions[0].take_again() == [items[0]]
    replica.leave(items[0])
    sessions[1].seen_at = 8.0
    assert replica.seen_at == 8.0, "only the session that has it last counts"
