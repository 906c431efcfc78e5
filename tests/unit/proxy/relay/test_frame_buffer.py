from proxy.relay.frame_buffer import FrameBuffer
from proxy.wire.frames import Frame
from tests.support.present import present


def test_a_frame_is_put_together_from_its_parts() -> None:
    buffer = FrameBuffer()
    part = Frame([b"ab", b"c"], 6, False)
    assert buffer.add(part) is None
    part.pieces = [b"d"]
    assert buffer.add(part) is None
    part.pieces = [b"ef"]
    part.complete = True
    whole = buffer.add(part)
    assert whole is not None
    assert (b"".join(whole.pieces), whole.size, whole.complete) == (b"abcdef", 6, True)


def test_the_next_frame_has_nothing_of_the_one_before() -> None:
    buffer = FrameBuffer()
    assert present(buffer.add(Frame([b"ab"], 2, True))).pieces == [b"ab"]
    assert present(buffer.add(Frame([b"cd"], 2, True))).pieces == [b"cd"]
