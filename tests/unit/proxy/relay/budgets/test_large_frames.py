import pytest

from proxy.quota.identity import ANONYMOUS, Identity
from proxy.relay.budgets.large_frames import MAX_RETRY_SECONDS, RETRY_SECONDS, LargeFrame, LargeFrames

SIZE = 40

ALICE, BOB, CAROL = (Identity(name, "c", "10.0.0.1") for name in ("alice", "bob", "carol"))


class Connection:
    """The memory of a connection of one user."""

    def __init__(self, frames: LargeFrames, who: Identity = ALICE) -> None:
        self._memory = LargeFrame(frames)
        self.leave = self._memory.leave
        self.give_back = self._memory.give_back
        self.who = who

    def reserve(self, size: int) -> bool:
        return self._memory.reserve(size, self.who)

    @property
    def size(self) -> int:
        return self._memory.size

    @property
    def retry_seconds(self) -> float:
        return self._memory.retry_seconds


@pytest.fixture
def frames() -> LargeFrames:
    return LargeFrames(100)


def connections(frames: LargeFrames, number: int) -> list[Connection]:
    """Of different users."""
    return [Connection(frames, Identity(f"user {index}", "c", "10.0.0.1")) for index in range(number)]


def test_a_frame_gets_its_whole_size_or_nothing(frames: LargeFrames) -> None:
    one, other, third = connections(frames, 3)
    assert one.reserve(SIZE)
    assert other.reserve(SIZE)
    assert not third.reserve(SIZE)
    assert (one.size, other.size, third.size, frames.reserved) == (SIZE, SIZE, 0, 2 * SIZE)
    one.give_back()
    assert third.reserve(SIZE)
    for frame in (one, other, third):
        frame.give_back()
    assert (frames.reserved, frames.wanted) == (0, False)


def test_a_frame_larger_than_all_of_the_memory_has_it_alone(frames: LargeFrames) -> None:
    small, huge = connections(frames, 2)
    assert small.reserve(1)
    assert not huge.reserve(1000)
    small.give_back()
    assert huge.reserve(1000)
    assert not small.reserve(1)


def test_small_frames_do_not_overtake_a_large_one(frames: LargeFrames) -> None:
    first, large, small = connections(frames, 3)
    assert first.reserve(SIZE)
    assert not large.reserve(100)
    assert not small.reserve(1), "there is memory, but it is not its turn"
    first.give_back()
    assert not small.reserve(1)
    assert large.reserve(100)


def test_who_leaves_the_line_holds_nobody_up(frames: LargeFrames) -> None:
    first, large, small = connections(frames, 3)
    assert first.reserve(SIZE)
    assert not large.reserve(100)
    assert not small.reserve(1)
    large.leave()
    assert small.reserve(1)
    large.leave()
    small.leave()
    assert frames.reserved == SIZE + 1


def test_a_connection_has_one_frame_at_a_time(frames: LargeFrames) -> None:
    (frame,) = connections(frames, 1)
    assert frame.reserve(SIZE)
    assert not frame.reserve(1)
    assert (frame.retry_seconds, frames.wanted) == (RETRY_SECONDS, False)
    frame.give_back()
    frame.give_back()
    assert frame.reserve(1)
    assert frames.reserved == 1


def test_a_long_line_is_not_asked_often(frames: LargeFrames) -> None:
    first, *waiting = connections(frames, 1000)
    assert first.reserve(100)
    assert not any(frame.reserve(SIZE) for frame in waiting)
    seconds = [frame.retry_seconds for frame in waiting]
    assert seconds[:3] == pytest.approx([RETRY_SECONDS, 2 * RETRY_SECONDS, 3 * RETRY_SECONDS])
    assert seconds == sorted(seconds)
    assert seconds[-1] == MAX_RETRY_SECONDS


def granted(frames: LargeFrames, holder: Connection, waiting: list[Connection]) -> list[str]:
    """Who gets the memory, one after the other."""
    order = []
    while waiting:
        holder.give_back()
        assert frames.reserved == 0
        [holder] = [connection for connection in waiting if connection.reserve(100)]
        waiting.remove(holder)
        order.append(holder.who.principal)
    return order


def test_requests_of_a_client_have_at_most_half_of_the_memory(frames: LargeFrames) -> None:
    alice = [Connection(frames) for _ in range(4)]
    assert [connection.reserve(20) for connection in alice] == [True, True, False, False]
    bob = Connection(frames, BOB)
    assert bob.reserve(60), "bob does not wait behind alice's further requests"
    assert not alice[2].reserve(20)
    alice[0].give_back()
    assert not alice[3].reserve(20), "it is not its turn"
    assert alice[2].reserve(20)
    for connection in (*alice, bob):
        connection.leave()
        connection.give_back()
    assert (frames.reserved, frames.wanted) == (0, False)
    assert bob.reserve(1)


def test_clients_have_turns_whatever_the_number_of_their_connections(frames: LargeFrames) -> None:
    holder = Connection(frames, CAROL)
    assert holder.reserve(100)
    users = [ALICE] * 5 + [BOB, CAROL, BOB]
    waiting = [Connection(frames, who) for who in users]
    assert not any(connection.reserve(100) for connection in waiting)
    order = granted(frames, holder, waiting)
    assert order == ["alice", "bob", "carol", "alice", "bob", "alice", "alice", "alice"]


def test_a_client_that_connects_again_waits_for_one_turn_of_each_other_client(frames: LargeFrames) -> None:
    holder = Connection(frames, CAROL)
    assert holder.reserve(100)
    waiting = [Connection(frames, ALICE) for _ in range(50)]
    assert not any(connection.reserve(100) for connection in waiting)
    gone = Connection(frames, BOB)
    assert not gone.reserve(100)
    gone.leave()
    again = Connection(frames, BOB)
    assert not again.reserve(100)
    assert granted(frames, holder, [*waiting, again]).index("bob") == 1


def test_those_without_a_principal_are_told_apart_by_their_addresses(frames: LargeFrames) -> None:
    holder = Connection(frames, CAROL)
    assert holder.reserve(100)
    nobodies = [Identity(ANONYMOUS, "c", address) for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2")]
    waiting = [Connection(frames, who) for who in nobodies]
    assert not any(connection.reserve(100) for connection in waiting)
    holder.give_back()
    assert waiting[0].reserve(100)
    waiting[0].give_back()
    assert not waiting[1].reserve(100)
    assert waiting[2].reserve(100)


def test_a_client_asks_the_later_the_more_requests_are_before_its_own(frames: LargeFrames) -> None:
    holder = Connection(frames, CAROL)
    assert holder.reserve(100)
    waiting = [Connection(frames, who) for who in [ALICE] * 100 + [BOB] * 3]
    assert not any(connection.reserve(100) for connection in waiting)
    places = [round(connection.retry_seconds / RETRY_SECONDS) for connection in waiting]
    assert places[:4] == [1, 3, 5, 7]
    assert places[-3:] == [2, 4, 6]
    assert places[99] == 103
