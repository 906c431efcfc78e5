"""ReadTurns: the requests that all connections read in one turn of the event loop."""

from collections.abc import Callable

from proxy.relay.budgets.read_turns import FEW_FRAMES, FRAMES, ReadTurns


def test_each_time_of_the_clock_has_so_many_requests() -> None:
    turns = ReadTurns(None)
    for now in (0.0, 0.001, 5.0):
        taken = [turns.take(1, now) for _ in range(FRAMES + 3)]
        assert taken == [True] * FRAMES + [False] * 3


def test_a_turn_in_which_the_clock_advances_has_no_more() -> None:
    ends: list[Callable[[], None]] = []
    turns = ReadTurns(ends.append)
    at_once = [turns.take(1, 0.0) for _ in range(FEW_FRAMES + 1)]
    later = [turns.take(1, at / 1000) for at in range(1, FRAMES)]
    assert at_once + later == [True] * FRAMES + [False] * FEW_FRAMES
    (end,) = ends
    end()
    assert [turns.take(1, FRAMES / 1000) for _ in range(FRAMES + 1)] == [True] * FRAMES + [False]
    assert len(ends) == 2


def test_the_end_of_a_short_turn_is_not_awaited() -> None:
    ends: list[Callable[[], None]] = []
    turns = ReadTurns(ends.append)
    for at in range(3):
        assert [turns.take(1, at / 1000) for _ in range(FEW_FRAMES)] == [True] * FEW_FRAMES
    assert ends == []
