"""ReadTurns: the requests that all connections read in one turn of the event loop."""

from proxy.relay.read_turns import FRAMES, ReadTurns


def test_each_time_of_the_clock_has_so_many_requests():
    turns = ReadTurns()
    for now in (0.0, 0.001, 5.0):
        taken = [turns.take(1, now) for _ in range(FRAMES + 3)]
        assert taken == [True] * FRAMES + [False] * 3
