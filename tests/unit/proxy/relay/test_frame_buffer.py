"""A large request is kept until it is whole."""

from proxy.relay.frame_buffer import FrameBuffer
from proxy.wire.frames import Frame


def test_a_frame_is_put_together_from_its_parts():
    held = FrameBuffer()
    assert not held.open
    held.begin(Frame([b"fi", b"rst "], 20, False))
    assert held.open
    assert held.go_on(Frame([b"more "], 20, False)) is None
    whole = held.go_on(Frame([b"the rest"], 20, True))
    assert whole is not None
    assert (b"".join(whole.pieces), whole.size, whole.complete) == (b"first more the rest", 20, True)
    assert not held.open
