from proxy.relay.outgoing import Outgoing
from proxy.wire.frames import CUT_THROUGH_BYTES, Frame, FrameSplitter
from tests.support.messages.kio_messages import framed
from tests.support.present import present

A, B, C = framed(b"a" * 50), framed(b"b" * 60), framed(b"c" * 70)


def splitter(*chunks: bytes) -> FrameSplitter:
    """A splitter that has been fed these."""
    found = FrameSplitter(CUT_THROUGH_BYTES)
    for chunk in chunks:
        found.feed(chunk)
    return found


def next_of(found: FrameSplitter) -> Frame:
    return present(found.next())


def test_frames_that_are_a_whole_chunk_leave_as_this_chunk() -> None:
    chunk = A + B + C
    found, out = splitter(chunk), Outgoing()
    for _ in range(3):
        out.add_frame(next_of(found))
    assert out.pieces == [chunk]
    assert out.pieces[0] is chunk


def test_frames_of_a_part_of_a_chunk_leave_as_one_piece() -> None:
    found, out = splitter(A + B + C), Outgoing()
    found.next()
    out.add_frame(next_of(found))
    out.add_frame(next_of(found))
    assert out.pieces == [B + C]


def test_a_frame_that_does_not_follow_the_last_one_begins_another_piece() -> None:
    found, out = splitter(A + B + C), Outgoing()
    out.add_frame(next_of(found))
    found.next()
    out.add_frame(next_of(found))
    assert out.pieces == [A, C]


def test_bytes_between_frames_keep_their_place() -> None:
    found, out = splitter(A + B + C), Outgoing()
    out.add_frame(next_of(found))
    out.add([b"own", b"bytes"])
    out.add_frame(next_of(found))
    out.add_frame(next_of(found))
    out.add([b"end"])
    assert out.pieces == [A, b"own", b"bytes", B + C, b"end"]


def test_a_frame_in_several_chunks_and_one_whose_pieces_have_been_used_leave_in_their_pieces() -> None:
    large = framed(b"x" * 9000)
    found, out = splitter(A + large[:5000], large[5000:] + B), Outgoing()
    used = present(found.next())
    used.pieces[:] = [b"edited"]
    out.add_frame(used)
    out.add_frame(next_of(found))
    out.add_frame(next_of(found))
    assert out.pieces == [b"edited", large[:5000], large[5000:], B]


def test_equal_chunks_one_after_the_other_are_two_pieces() -> None:
    found, out = splitter(A), Outgoing()
    out.add_frame(next_of(found))
    found.feed(bytes(bytearray(A)))
    out.add_frame(next_of(found))
    assert out.pieces == [A, A]


def test_the_next_call_begins_with_nothing_and_lists_that_were_taken_stay() -> None:
    found, out = splitter(A + B), Outgoing()
    out.add_frame(next_of(found))
    taken = out.pieces
    out.add_frame(next_of(found))
    out.clear()
    assert (out.pieces, taken) == ([], [A])
    out.add([b"next"])
    assert out.pieces == [b"next"]


def test_only_frames_that_are_one_piece_are_a_run() -> None:
    found, out = splitter(A + B + C), Outgoing()
    assert (out.any, out.run) == (False, None)
    out.add_frame(next_of(found))
    assert (out.any, out.run, out.run) == (True, A, A), "it stays"
    out.add_frame(next_of(found))
    assert (out.run, out.pieces) == (A + B, [A + B])
    assert out.run is None, "it has become a piece"
    out.clear()
    assert (out.any, out.run, out.pieces) == (False, None, [])


def test_bytes_and_frames_are_no_run() -> None:
    found, out = splitter(A + B + C), Outgoing()
    out.add([b"own"])
    out.add_frame(next_of(found))
    assert (out.any, out.run) == (True, None)
    out.clear()
    out.add_frame(next_of(found))
    out.add([b"own"])
    assert (out.any, out.run, out.pieces) == (True, None, [B, b"own"])


def test_a_run_that_is_a_whole_chunk_is_this_chunk() -> None:
    chunk = A + B
    found, out = splitter(chunk), Outgoing()
    out.add_frame(next_of(found))
    out.add_frame(next_of(found))
    assert out.run is chunk
