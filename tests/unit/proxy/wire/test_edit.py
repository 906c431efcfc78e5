from collections.abc import Iterator

import pytest

from proxy.wire.edit import Edit, apply, count, i16, i32, i64, insert, replace, string, uvarint, with_length

FRAME = b"0123456789"


def edited(frame: bytes, edits: list[Edit]) -> bytes:
    """What the edits come to, done the simple way."""
    for edit in reversed(edits):
        frame = frame[: edit.start] + edit.new + frame[edit.end :]
    return frame


def splits(data: bytes) -> Iterator[list[bytes]]:
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            yield [data[:first], data[first:second], data[second:]]
    yield [data[at : at + 1] for at in range(len(data))]
    yield [piece for at in range(len(data)) for piece in (b"", data[at : at + 1])]


EDITS = {
    "none": [],
    "same length": [Edit(2, 4, b"xy")],
    "longer": [Edit(2, 4, b"vwxyz")],
    "shorter": [Edit(2, 6, b"x")],
    "an insertion": [Edit(3, 3, b"xyz")],
    "an insertion at the front": [Edit(0, 0, b"xyz")],
    "a deletion": [Edit(3, 7, b"")],
    "the front": [Edit(0, 4, b"wxyz")],
    "the end": [Edit(7, 10, b"z")],
    "the end taken off": [Edit(7, 10, b"")],
    "all": [Edit(0, 10, b"x")],
    "nothing left": [Edit(0, 10, b"")],
    "side by side": [Edit(1, 3, b"x"), Edit(3, 5, b"yyy"), Edit(5, 6, b"")],
    "insertions between": [Edit(2, 2, b"x"), Edit(2, 4, b"y"), Edit(4, 4, b"z"), Edit(9, 9, b"!")],
    "bytes on their own": [Edit(1, 2, b"a"), Edit(4, 5, b""), Edit(6, 7, b"ccc"), Edit(9, 10, b"d")],
}


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS.keys())
def test_edits_come_out_the_same_however_the_frame_is_split(edits: list[Edit]) -> None:
    for pieces in splits(FRAME):
        assert b"".join(apply(pieces, edits)) == edited(FRAME, edits), pieces


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS.keys())
def test_pieces_from_the_middle_of_a_frame_know_their_offset(edits: list[Edit]) -> None:
    moved = [Edit(edit.start + 1000, edit.end + 1000, edit.new) for edit in edits]
    for pieces in splits(FRAME):
        assert b"".join(apply(pieces, moved, 1000)) == edited(FRAME, edits), pieces


def test_a_piece_without_an_edit_is_not_copied() -> None:
    pieces = [b"abc", b"def", b"ghi"]
    changed = apply(pieces, [Edit(4, 5, b"x")])
    assert changed[0] is pieces[0]
    assert changed[-1] is pieces[2]


def test_the_frame_itself_is_left_as_it_was() -> None:
    pieces = [b"abc", b"def"]
    apply(pieces, [Edit(1, 5, b"")])
    assert pieces == [b"abc", b"def"]


def test_growth_is_by_how_much_the_frame_becomes_longer() -> None:
    assert Edit(2, 4, b"vwxyz").growth == 3
    assert Edit(2, 4, b"").growth == -2
    assert Edit(2, 2, b"x").growth == 1
    assert Edit(2, 3, b"x").growth == 0


def test_an_edit_is_inserted_in_its_place() -> None:
    edits: list[Edit] = []
    for start in (5, 1, 9, 3, 9, 0):
        insert(edits, Edit(start, start + 1, b""))
    assert [edit.start for edit in edits] == [0, 1, 3, 5, 9, 9]


def test_a_frame_that_changes_its_length_says_so() -> None:
    edits = [Edit(4, 6, b"abc"), Edit(6, 7, b"abcd")]
    announced = with_length(edits, 100)
    assert [(edit.start, edit.end, edit.new) for edit in announced] == [
        (0, 4, i32(104)),
        (4, 6, b"abc"),
        (6, 7, b"abcd"),
    ]


def test_a_frame_that_keeps_its_length_is_not_touched_in_front() -> None:
    edits = [Edit(4, 6, b"abc"), Edit(6, 7, b"")]
    assert with_length(edits, 100) is edits
    assert with_length([], 100) == []


def test_numbers_are_written_as_kafka_does() -> None:
    assert i16(-2) == b"\xff\xfe"
    assert i32(2**31 - 1) == b"\x7f\xff\xff\xff"
    assert [uvarint(value) for value in (0, 127, 128, 300, 2**31 - 1)] == [
        b"\x00",
        b"\x7f",
        b"\x80\x01",
        b"\xac\x02",
        b"\xff\xff\xff\xff\x07",
    ]


def test_strings_and_counts_are_written_for_their_version() -> None:
    assert string("grün", False) == b"\x00\x05gr\xc3\xbcn"
    assert string("grün", True) == b"\x06gr\xc3\xbcn"
    assert string("x" * 127, True) == b"\x80\x01" + b"x" * 127
    assert count(7, False) == b"\x00\x00\x00\x07"
    assert count(7, True) == b"\x08"
    assert count(127, True) == b"\x80\x01"


def test_an_edit_takes_the_place_of_one_of_the_same_field() -> None:
    edits = [Edit(1, 3, b"a"), Edit(5, 6, b"b")]
    replace(edits, Edit(5, 6, b"c"))
    replace(edits, Edit(3, 5, b"d"))
    assert [(edit.start, edit.new) for edit in edits] == [(1, b"a"), (3, b"d"), (5, b"c")]


@pytest.mark.parametrize("value", [0, -1, 2**63 - 1, -(2**63)])
def test_64_bits(value: int) -> None:
    assert int.from_bytes(i64(value), "big", signed=True) == value
