"""Senders: the limits that throttled them, and their connections."""

from dataclasses import replace

import pytest

from pipeline.transforms.replay.layout import Interval
from pipeline.transforms.replay.senders import Sender, connections, throttled_rate, throttled_rates

BURST = 1.0


def waits(start: float, size: float, seconds: float = 10.0) -> Interval:
    """An interval of ten seconds in which each request waits."""
    return Interval(start, 10.0, size, 10.0, 10.0, seconds)


def sender(*intervals: Interval, limit: float = 100.0) -> Sender:
    return Sender("alice", "c", intervals, limit)


def sent(*senders: Sender, together: bool = False) -> list[tuple[int, list[tuple[float, float, int]]]]:
    """The steps of each connection, with the index of its sender."""
    found = []
    for index, connection in connections(senders, BURST, together=together):
        steps = []
        while connection.next is not None:
            steps.append(connection.next)
            connection.sent(connection.next[0], 0.0)
        found.append((index, steps))
    return found


def test_what_was_received_while_all_requests_waited_is_the_limit() -> None:
    """The first interval has a burst, in which more passes."""
    burst = Interval(0.0, 10.0, 5000.0, 10.0, 5.0, 5.0)
    assert throttled_rate([burst, waits(10.0, 1500.0)], 1000.0) == 150.0
    assert throttled_rate([burst], 1000.0) == 500.0
    assert throttled_rate([Interval(0.0, 10.0, 5000.0, 10.0, 0.0, 0.0)], 1000.0) == 0.0


@pytest.mark.parametrize(("size", "limit"), [(940.0, 94.0), (960.0, 100.0), (1240.0, 100.0), (1260.0, 126.0)])
def test_a_limit_near_the_tried_one_is_the_tried_one(size: float, limit: float) -> None:
    (found,) = throttled_rates([sender(waits(0.0, size))], together=False)
    assert (found.limit, found.in_force) == (limit, limit == 100.0)


def test_parts_that_add_up_to_the_tried_limit_are_parts_of_it() -> None:
    senders = [sender(waits(0.0, 300.0)), sender(waits(0.0, 900.0), limit=120.0)]
    assert [found.limit for found in throttled_rates(senders, together=True)] == [25.0, 75.0]
    lower = [replace(each, limit=60.0) for each in senders]
    assert [(found.limit, found.in_force) for found in throttled_rates(lower, together=True)] == [
        (30.0, False),
        (90.0, False),
    ]
    assert throttled_rates([], together=True) == []


def test_each_connection_sends_in_its_intervals() -> None:
    """Two connections in the first interval, of which the second one sends in the third interval, too."""
    first = Interval(0.0, 10.0, 40.0, 1.0, 0.0, 0.0, connections=2, places=(0, 1))
    second = Interval(10.0, 10.0, 50.0, 1.0, 0.0, 0.0, places=())
    third = Interval(20.0, 10.0, 60.0, 1.0, 0.0, 0.0, places=(1,))
    other = sender(replace(first, start=5.0, size=70.0, places=(0,)))
    assert sent(sender(first, second, third), other) == [
        (0, [(0.0, 40.0, 0)]),
        (0, [(0.0, 40.0, 0), (20.0, 60.0, 2)]),
        (1, [(5.0, 70.0, 0)]),
    ]


def test_a_sender_without_a_place_has_no_connection() -> None:
    assert sent(sender(Interval(0.0, 10.0, 40.0, 1.0, 0.0, 0.0, places=()))) == []


def test_what_waits_is_due_at_once_if_the_limit_is_that_of_the_events() -> None:
    (same,) = sent(sender(waits(0.0, 1000.0)))
    (other,) = sent(sender(waits(0.0, 1000.0), limit=500.0))
    assert {time for time, _, _ in same[1]} == {0.0}
    assert max(time for time, _, _ in other[1]) == pytest.approx(7.875)
    assert sum(size for _, size, _ in other[1]) == pytest.approx(1000.0)
