import pytest

from proxy.relay.large_frames import MAX_RETRY_SECONDS, RETRY_SECONDS, LargeFrame, LargeFrames

SIZE = 40


@pytest.fixture
def frames():
    return LargeFrames(100)


def connections(frames, number):
    return [LargeFrame(frames) for _ in range(number)]


def test_a_frame_gets_its_whole_size_or_nothing(frames):
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


def test_a_frame_larger_than_all_of_the_memory_has_it_alone(frames):
    small, huge = connections(frames, 2)
    assert small.reserve(1)
    assert not huge.reserve(1000)
    small.give_back()
    assert huge.reserve(1000)
    assert not small.reserve(1)


def test_small_frames_do_not_overtake_a_large_one(frames):
    first, large, small = connections(frames, 3)
    assert first.reserve(SIZE)
    assert not large.reserve(100)
    assert not small.reserve(1), "there is memory, but it is not its turn"
    first.give_back()
    assert not small.reserve(1)
    assert large.reserve(100)


def test_who_leaves_the_line_holds_nobody_up(frames):
    first, large, small = connections(frames, 3)
    assert first.reserve(SIZE)
    assert not large.reserve(100)
    assert not small.reserve(1)
    large.leave()
    assert small.reserve(1)
    large.leave()
    small.leave()
    assert frames.reserved == SIZE + 1


def test_a_connection_has_one_frame_at_a_time(frames):
    (frame,) = connections(frames, 1)
    assert frame.reserve(SIZE)
    assert not frame.reserve(1)
    assert (frame.retry_seconds, frames.wanted) == (RETRY_SECONDS, False)
    frame.give_back()
    frame.give_back()
    assert frame.reserve(1)
    assert frames.reserved == 1


def test_a_long_line_is_not_asked_often(frames):
    first, *waiting = connections(frames, 1000)
    assert first.reserve(100)
    assert not any(frame.reserve(SIZE) for frame in waiting)
    seconds = [frame.retry_seconds for frame in waiting]
    assert seconds[:3] == pytest.approx([RETRY_SECONDS, 2 * RETRY_SECONDS, 3 * RETRY_SECONDS])
    assert seconds == sorted(seconds)
    assert seconds[-1] == MAX_RETRY_SECONDS
