"""Turns: a connection that waits sends nothing."""

from pipeline.transforms.replay.layout import Interval
from pipeline.transforms.replay.turns import take_turns


def waits(start: float, seconds: float, connections: int = 1) -> Interval:
    """An interval of ten seconds in which each connection sends one request, which waits."""
    return Interval(start, 10.0, 1000.0, 1.0, 1.0, seconds, connections)


def found(*intervals: Interval) -> list[tuple[list[int], float]]:
    return [(list(each.places), each.waiting) for each in take_turns(intervals)]


def test_short_waits_are_over_in_the_next_interval() -> None:
    assert found(waits(0, 5, 2), waits(10, 5, 3)) == [([0, 1], 2.0), ([0, 1, 2], 3.0)]


def test_a_connection_sends_again_after_its_wait() -> None:
    assert found(*[waits(30.0 * number, 30) for number in range(4)]) == [([0], 1.0)] * 4


def test_who_sends_during_a_wait_is_another_connection() -> None:
    places, waiting = zip(*found(*[waits(10.0 * number, 30) for number in range(7)]), strict=True)
    assert [place for (place,) in places] == [0, 1, 2, 0, 1, 2, 0]
    assert waiting == (1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0)


def test_who_sends_together_waits_in_turn() -> None:
    """The waits of three connections are 20, 40 and 60 s, and 40 s on average."""
    places = [place for place, _ in found(waits(0, 40, 3), waits(20, 60), waits(40, 60))]
    assert places == [[0, 1, 2], [0], [1]]


def test_impossible_waits_have_a_bounded_number_of_connections() -> None:
    last = take_turns([waits(10.0 * number, 1e12, 15_000) for number in range(3)])[-1]
    assert max(last.places) < 20_000
    assert len(last.places) == 15_000
