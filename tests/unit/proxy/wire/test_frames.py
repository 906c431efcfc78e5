import pytest

from proxy.wire.errors import FrameTooLarge, Short
from proxy.wire.frames import CUT_THROUGH_BYTES, JOINED_BYTES, Frame, FrameSplitter, start_reading
from proxy.wire.reader import NOTHING, Reader
from tests.support.messages.kio_messages import framed

LIMIT = 100 << 20


def splitter(first_part_bytes: int = CUT_THROUGH_BYTES) -> FrameSplitter:
    return FrameSplitter(LIMIT, first_part_bytes)


def head(size: int) -> bytes:
    """The length in front of a frame of `size` bytes in all."""
    return (size - 4).to_bytes(4, "big")


def taken(found: FrameSplitter) -> Frame:
    frame = found.next()
    assert frame is not None
    return frame


def frames(found: FrameSplitter) -> list[bytes]:
    out = []
    while (frame := found.next()) is not None:
        assert sum(map(len, frame.pieces)) == frame.size
        assert frame.complete
        out.append(b"".join(frame.pieces))
    return out


def test_frames_come_whole_however_they_are_split() -> None:
    sent = [framed(b""), framed(b"a"), framed(b"bcd"), framed(b"")]
    stream = b"".join(sent)
    for first in range(len(stream) + 1):
        for second in range(first, len(stream) + 1):
            found = splitter()
            got = []
            for chunk in (stream[:first], stream[first:second], stream[second:]):
                found.feed(chunk)
                got += frames(found)
            assert got == sent
            assert (found.buffered, found.in_frame) == (0, False)


def test_a_frame_is_not_handed_out_before_its_last_byte() -> None:
    found = splitter()
    for byte in framed(b"abc")[:-1]:
        found.feed(bytes([byte]))
        assert found.next() is None
    assert found.buffered == 6
    found.feed(b"c")
    assert frames(found) == [framed(b"abc")]
    assert found.buffered == 0


def test_a_chunk_that_is_one_frame_is_not_copied() -> None:
    found = splitter()
    chunk = framed(b"abc")
    found.feed(chunk)
    assert taken(found).pieces[0] is chunk


def test_frames_of_one_chunk_are_parts_of_it() -> None:
    found = splitter()
    sent = [framed(b"abc"), framed(b""), framed(b"de")]
    chunk = b"".join(sent)
    found.feed(chunk + framed(b"more")[:5])
    start = 0
    for each in sent:
        frame = taken(found)
        assert (frame.chunk[frame.start : frame.start + frame.size], frame.start) == (each, start)
        assert frame.chunk == chunk + framed(b"more")[:5]
        start += len(each)
    assert (found.next(), found.buffered) == (None, 5)


def test_the_pieces_of_a_part_of_a_chunk_are_copied_once() -> None:
    found = splitter()
    found.feed(framed(b"abc") + framed(b"de"))
    frame = taken(found)
    pieces = frame.pieces
    assert (pieces, frame.chunk, frame.pieces is pieces) == ([framed(b"abc")], b"", True)
    pieces.clear()
    assert frame.pieces == []


def test_an_idle_splitter_keeps_no_chunk() -> None:
    found = splitter()
    found.feed(framed(b"abc"))
    frame = taken(found)
    assert (frame.chunk, found.next(), frame.chunk) == (framed(b"abc"), None, b"")


def test_a_frame_of_exactly_the_limit_is_buffered_until_it_is_whole() -> None:
    found = splitter()
    found.feed(head(CUT_THROUGH_BYTES) + bytes(CUT_THROUGH_BYTES - 5))
    assert found.next() is None
    assert not found.in_frame
    found.feed(b"\0")
    frame = taken(found)
    assert (frame.size, frame.complete) == (CUT_THROUGH_BYTES, True)


def test_a_larger_frame_is_cut_through_once_the_hold_is_there() -> None:
    found = splitter()
    size = CUT_THROUGH_BYTES + 10_000
    found.feed(head(size))
    found.feed(bytes(CUT_THROUGH_BYTES - 5))
    assert found.next() is None
    assert found.buffered == CUT_THROUGH_BYTES - 1
    found.feed(b"\0")
    frame = taken(found)
    assert (frame.size, frame.complete, found.in_frame) == (size, False, True)
    assert sum(map(len, frame.pieces)) == CUT_THROUGH_BYTES
    assert found.next() is None
    found.feed(b"a" * 6000)
    assert found.next() is frame
    assert (frame.pieces, frame.complete, found.in_frame) == ([b"a" * 6000], False, True)
    found.feed(b"b" * 4000 + framed(b"next"))
    assert found.next() is frame
    assert (frame.pieces, frame.complete, found.in_frame) == ([b"b" * 4000], True, False)
    assert frames(found) == [framed(b"next")]


def test_a_large_frame_that_is_there_at_once_is_whole() -> None:
    found = splitter()
    body = bytes(CUT_THROUGH_BYTES)
    found.feed(framed(body) + framed(b"next"))
    assert frames(found) == [framed(body), framed(b"next")]


def test_the_threshold_may_be_small_and_small_frames_are_buffered_all_the_same() -> None:
    found = splitter(first_part_bytes=100)
    found.feed(head(1000) + bytes(995))
    assert found.next() is None
    found.feed(b"\0" + head(CUT_THROUGH_BYTES + 1) + bytes(95))
    assert taken(found).size == 1000
    assert found.next() is None
    found.feed(b"\0")
    frame = taken(found)
    assert (sum(map(len, frame.pieces)), frame.complete) == (100, False)


def test_a_frame_of_exactly_the_limit_is_buffered_whatever_the_threshold() -> None:
    found = splitter(first_part_bytes=100)
    found.feed(head(CUT_THROUGH_BYTES) + bytes(CUT_THROUGH_BYTES - 5))
    assert found.next() is None
    found.feed(b"\0")
    assert taken(found).complete


def test_the_end_of_a_large_frame_is_handed_out_however_little_it_is() -> None:
    found = splitter(first_part_bytes=100)
    size = CUT_THROUGH_BYTES + 1
    found.feed(head(size) + bytes(size - 5))
    assert not taken(found).complete
    found.feed(b"z")
    frame = taken(found)
    assert (frame.pieces, frame.complete) == ([b"z"], True)


@pytest.mark.parametrize("size", [CUT_THROUGH_BYTES, 2 * CUT_THROUGH_BYTES])
def test_bytes_that_come_in_dribbles_make_few_pieces(size: int) -> None:
    """Each chunk has its cost in memory and in time: a peer must not choose how many there are."""
    dribble = 16
    found = splitter()
    most = 0
    got = bytearray()
    stream = (head(size) + bytes(range(256)) * (size // 256))[:size]
    for at in range(0, size, dribble):
        found.feed(stream[at : at + dribble])
        frame = found.next()
        if frame is not None:
            most = max(most, len(frame.pieces))
            got += b"".join(frame.pieces)
            if not frame.complete:
                assert sum(map(len, frame.pieces)) >= JOINED_BYTES
    assert got == stream
    assert most <= 2 * CUT_THROUGH_BYTES // JOINED_BYTES + 1


@pytest.mark.parametrize("before", [b"", framed(b"a good one")])
@pytest.mark.parametrize("length", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_a_length_that_cannot_be_ends_it(before: bytes, length: int) -> None:
    found = splitter()
    found.feed(before)
    if before:
        assert frames(found) == [before]
    raw = length.to_bytes(4, "big", signed=True)
    found.feed(raw[:3])
    assert found.next() is None
    found.feed(raw[3:])
    with pytest.raises(FrameTooLarge, match=rf"{length}\b.*\b{LIMIT}\b") as caught:
        found.next()
    assert caught.value.head == raw


def test_the_longest_frame_is_allowed() -> None:
    found = FrameSplitter(10)
    found.feed(framed(b"0123456789"))
    assert frames(found) == [framed(b"0123456789")]
    found.feed(framed(b"0123456789a"))
    with pytest.raises(FrameTooLarge):
        found.next()


def test_empty_chunks_are_nothing() -> None:
    found = splitter()
    for chunk in (b"", b"\0\0", b"", b"\0\3", b"", b"abc", b"", b"\0"):
        found.feed(chunk)
    assert frames(found) == [framed(b"abc")]
    assert found.buffered == 1


def test_whole_frames_share_one_reader() -> None:
    kept = Reader(NOTHING)
    for number in (1, 2):
        reader = start_reading(Frame([framed(bytes([0, number]))], 6, True), kept)
        assert (reader is kept, reader.i16()) == (True, number)


def test_a_reader_of_a_part_of_a_chunk_ends_with_its_frame() -> None:
    found = splitter()
    found.feed(framed(b"\0\1") + framed(b"\0\2"))
    kept = Reader(NOTHING)
    for number in (1, 2):
        reader = start_reading(taken(found), kept)
        assert (reader is kept, reader.offset, reader.i16(), reader.offset) == (True, 4, number, 6)
        with pytest.raises(Short):
            reader.u8()


def test_a_frame_that_is_cut_through_has_a_reader_and_a_list_of_its_own() -> None:
    kept = Reader(NOTHING)
    frame = Frame([b"\0\0\1\0\0\7"], 260, False)
    reader = start_reading(frame, kept)
    assert (reader is kept, reader.i16()) == (False, 7)
    reader.pieces.append(b"\0\10")
    assert (reader.i16(), len(frame.pieces)) == (8, 1)


@pytest.mark.parametrize("cut", range(0, 26, 3))
def test_a_frame_that_is_put_back_is_the_next_one_again(cut: int) -> None:
    sent = [framed(b"a"), framed(b"bcd"), framed(b"efghijk")]
    stream = b"".join(sent)
    found = splitter()
    found.feed(stream[:cut])
    got = []
    while (frame := found.next()) is not None:
        before = found.buffered
        found.put_back(frame)
        found.put_back(taken(found))
        frame = taken(found)
        assert found.buffered == before
        got.append(b"".join(frame.pieces))
    found.feed(stream[cut:])
    for _ in range(len(sent) - len(got)):
        found.put_back(taken(found))
        got.append(b"".join(taken(found).pieces))
    assert got == sent
    assert (found.buffered, found.in_frame) == (0, False)


def test_the_first_part_of_a_large_frame_is_put_back() -> None:
    found = splitter(first_part_bytes=10)
    found.whole_bytes = 20
    frame = framed(bytes(range(40)))
    found.feed(frame[:15])
    part = taken(found)
    assert (part.complete, found.in_frame) == (False, True)
    found.put_back(part)
    assert (found.buffered, found.in_frame) == (15, False)
    found.feed(frame[15:30])
    assert not taken(found).complete
    found.feed(frame[30:])
    assert taken(found).complete
