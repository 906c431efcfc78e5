"""The reader over every split of its bytes: where a border lies must never matter."""

import re
from collections.abc import Callable, Iterator

import pytest

from proxy.wire.errors import Malformed, Short
from proxy.wire.reader import MAX_TAGS, Reader, text

FIELDS: list[tuple[str, Callable[[Reader], object], bytes, object]] = [
    ("u8", lambda reader: reader.u8(), b"\xfe", 254),
    ("i16", lambda reader: reader.i16(), b"\x01\x02", 0x102),
    ("i16 below zero", lambda reader: reader.i16(), b"\xff\xfe", -2),
    ("i32", lambda reader: reader.i32(), b"\x01\x02\x03\x04", 0x1020304),
    ("i32 below zero", lambda reader: reader.i32(), b"\x80\x00\x00\x00", -(2**31)),
    ("i64", lambda reader: reader.i64(), b"\0\0\0\1\0\0\0\2", 0x100000002),
    ("i64 below zero", lambda reader: reader.i64(), b"\xff" * 7 + b"\xfe", -2),
    ("uvarint of one byte", lambda reader: reader.uvarint(), b"\x7f", 127),
    ("uvarint of two", lambda reader: reader.uvarint(), b"\xac\x02", 300),
    ("the largest uvarint", lambda reader: reader.uvarint(), b"\xff\xff\xff\xff\x07", 2**31 - 1),
    ("uvarint longer than it need be", lambda reader: reader.uvarint(), b"\x81\x80\x80\x00", 1),
    ("string", lambda reader: reader.string(False), b"\x00\x05gr\xc3\xbcn", "grün"),
    ("null string", lambda reader: reader.string(False), b"\xff\xff", ""),
    ("compact string", lambda reader: reader.string(True), b"\x06gr\xc3\xbcn", "grün"),
    ("empty compact string", lambda reader: reader.string(True), b"\x01", ""),
    ("null compact string", lambda reader: reader.string(True), b"\x00", ""),
    ("string skipped", lambda reader: reader.skip_string(False), b"\x00\x03abc", None),
    ("null string skipped", lambda reader: reader.skip_string(False), b"\xff\xff", None),
    ("compact string skipped", lambda reader: reader.skip_string(True), b"\x04abc", None),
    ("count", lambda reader: reader.count(False), b"\x00\x00\x00\x07", 7),
    ("null array", lambda reader: reader.count(False), b"\xff\xff\xff\xff", 0),
    ("null count", lambda reader: reader.nullable_count(False), b"\xff\xff\xff\xff", -1),
    ("null compact count", lambda reader: reader.nullable_count(True), b"\x00", -1),
    ("compact count", lambda reader: reader.count(True), b"\x08", 7),
    ("null compact array", lambda reader: reader.count(True), b"\x00", 0),
    ("length of bytes", lambda reader: reader.bytes_length(False), b"\x00\x00\x01\x00", 256),
    ("null bytes", lambda reader: reader.bytes_length(False), b"\xff\xff\xff\xff", 0),
    ("length of compact bytes", lambda reader: reader.bytes_length(True), b"\x81\x02", 256),
    ("null compact bytes", lambda reader: reader.bytes_length(True), b"\x00", 0),
    ("uuid", lambda reader: reader.uuid(), bytes(range(16)), bytes(range(16))),
    ("tags", lambda reader: reader.skip_tags(), b"\x02\x00\x01x\xac\x02\x03abc", None),
    ("no tags", lambda reader: reader.skip_tags(), b"\x00", None),
    ("skipped bytes", lambda reader: reader.skip(6), b"abcdef", None),
    ("nothing skipped", lambda reader: reader.skip(0), b"", None),
]
BEFORE = b"\x11\x22"
AFTER = b"\x33\x44"


def ids(rows: list[tuple[str, Callable[[Reader], object], bytes, object]]) -> list[str]:
    return [row[0] for row in rows]


def splits(data: bytes) -> Iterator[list[bytes]]:
    """The data in one, two and three pieces, in single bytes, and with empty pieces between."""
    yield [data]
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            yield [data[:first], data[first:second], data[second:]]
    yield [data[at : at + 1] for at in range(len(data))]
    yield [piece for at in range(len(data)) for piece in (b"", data[at : at + 1], b"")]


@pytest.mark.parametrize(("name", "read", "data", "value"), FIELDS, ids=ids(FIELDS))
def test_a_field_reads_the_same_however_it_is_split(
    name: str, read: Callable[[Reader], object], data: bytes, value: object
) -> None:
    for pieces in splits(BEFORE + data + AFTER):
        reader = Reader(pieces, len(BEFORE))
        assert read(reader) == value, pieces
        assert reader.offset == len(BEFORE + data), pieces
        assert (reader.u8(), reader.u8()) == (0x33, 0x44), pieces
        assert reader.offset == len(BEFORE + data + AFTER), pieces


@pytest.mark.parametrize(("name", "read", "data", "value"), FIELDS, ids=ids(FIELDS))
def test_a_field_that_is_not_all_there_is_short(
    name: str, read: Callable[[Reader], object], data: bytes, value: object
) -> None:
    for there in range(len(data)):
        for pieces in splits(BEFORE + data[:there]):
            with pytest.raises(Short):
                read(Reader(pieces, len(BEFORE)))


@pytest.mark.parametrize(("name", "read", "data", "value"), FIELDS, ids=ids(FIELDS))
def test_a_field_in_a_part_of_a_chunk_ends_where_the_part_ends(
    name: str, read: Callable[[Reader], object], data: bytes, value: object
) -> None:
    chunk = b"before" + BEFORE + data + b"\0\0\0\4\0\0\0\0"
    reader = Reader([])
    for there in range(len(data)):
        reader.start_within(chunk, len(b"before"), len(BEFORE) + there, len(BEFORE))
        with pytest.raises(Short):
            read(reader)
    reader.start_within(chunk, len(b"before"), len(BEFORE + data), len(BEFORE))
    assert (reader.offset, read(reader), reader.offset) == (len(BEFORE), value, len(BEFORE + data))
    with pytest.raises(Short):
        reader.u8()


def test_a_mark_in_a_part_of_a_chunk_keeps_the_end_of_the_part() -> None:
    reader = Reader([])
    reader.start_within(b"0123456789", 2, 4, 1)
    mark = reader.mark()
    assert (reader.peek(3), reader.i16(), reader.offset) == (b"345", int.from_bytes(b"34", "big"), 3)
    reader.back_to(mark)
    assert (reader.offset, reader.take(3), reader.data[3:6]) == (1, 3, b"345")
    with pytest.raises(Short):
        reader.peek(1)
    reader.back_to(mark)
    with pytest.raises(Short):
        reader.skip(4)


@pytest.mark.parametrize(("name", "read", "data", "value"), FIELDS, ids=ids(FIELDS))
def test_a_field_is_read_again_from_a_mark_when_the_rest_has_come(
    name: str, read: Callable[[Reader], object], data: bytes, value: object
) -> None:
    whole = BEFORE + data + AFTER
    for there in range(len(BEFORE), len(BEFORE + data)):
        for release in (False, True):
            for pieces in splits(whole[:there]):
                reader = Reader(list(pieces))
                assert [reader.u8(), reader.u8()] == list(BEFORE)
                mark = reader.mark()
                with pytest.raises(Short):
                    read(reader)
                reader.back_to(mark)
                assert reader.offset == len(BEFORE)
                if release:
                    reader.release()
                reader.pieces.extend([whole[there : there + 1], whole[there + 1 :]])
                assert read(reader) == value, (pieces, release)
                assert (reader.u8(), reader.u8()) == (0x33, 0x44)
                assert reader.offset == len(whole)


def test_every_field_one_after_the_other_over_every_two_splits() -> None:
    fields = [field for field in FIELDS if field[2]]
    data = b"".join(field[2] for field in fields)
    for first in range(len(data)):
        reader = Reader([data[:first], data[first : first + 3], data[first + 3 :]])
        assert [field[1](reader) for field in fields] == [field[3] for field in fields], first
        assert reader.offset == len(data)
        with pytest.raises(Short):
            reader.u8()


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (lambda reader: reader.uvarint(), b"\xff\xff\xff\xff\x08"),
        (lambda reader: reader.uvarint(), b"\xff\xff\xff\xff\x7f"),
        (lambda reader: reader.uvarint(), b"\xff\xff\xff\xff\xff\x01"),
        (lambda reader: reader.uvarint(), b"\x80\x80\x80\x80\x80\x00"),
        (lambda reader: reader.string(False), b"\xff\xfe"),
        (lambda reader: reader.skip_string(False), b"\x80\x00"),
        (lambda reader: reader.count(False), b"\xff\xff\xff\xfe"),
        (lambda reader: reader.bytes_length(False), b"\x80\x00\x00\x00"),
        (lambda reader: reader.skip_tags(), bytes([MAX_TAGS + 1])),
        (lambda reader: reader.skip_tags(), b"\xff\xff\xff\xff\x07"),
        (lambda reader: reader.take(2**31), b"abc"),
    ],
)
def test_what_the_protocol_forbids_is_malformed_and_not_merely_short(
    read: Callable[[Reader], object], data: bytes
) -> None:
    for pieces in splits(data + AFTER):
        with pytest.raises(Malformed) as caught:
            read(Reader(pieces))
        assert not isinstance(caught.value, Short)


@pytest.mark.parametrize(
    "read",
    [
        lambda reader: reader.string(True),
        lambda reader: reader.skip_string(True),
        lambda reader: reader.skip(2**31 - 1),
    ],
)
def test_a_huge_length_is_short_at_once(read: Callable[[Reader], object]) -> None:
    with pytest.raises(Short):
        read(Reader([b"\xff\xff\xff\xff\x07", b"abc"]))


def test_short_says_where_and_how_much() -> None:
    reader = Reader([b"ab", b"cd"], 3)
    with pytest.raises(Short) as caught:
        reader.i32()
    assert re.findall(r"\d+", str(caught.value)) == ["4", "3", "1"]
    with pytest.raises(Short, match=r"offset 4\b"):
        Reader([b"ab", b"cd"], 4).u8()


def test_take_says_where_in_data_the_bytes_begin() -> None:
    for pieces in splits(b"0123456789"):
        reader = Reader(pieces, 3)
        at = reader.take(4)
        assert reader.data[at : at + 4] == b"3456"


def test_bytes_are_skipped_as_they_come() -> None:
    for pieces in splits(b"0123456789"):
        reader = Reader(pieces, 4)
        assert reader.skip_available(20) == 14
        assert reader.offset == 10
        assert reader.skip_available(14) == 14
        reader.pieces.extend([b"", b"abcdefghij", b"kl", b"mnop"])
        assert reader.skip_available(14) == 0
        assert reader.offset == 24
        at = reader.take(2)
        assert reader.data[at : at + 2] == b"op"


def test_a_released_reader_holds_only_what_lies_ahead() -> None:
    reader = Reader([b"0123", b"4567", b"89ab", b"cdef"], 6)
    reader.release()
    assert reader.pieces == [b"89ab", b"cdef"]
    at = reader.take(4)
    assert (reader.data[at : at + 4], reader.offset) == (b"6789", 10)
    reader.release()
    assert reader.pieces == [b"89ab", b"cdef"]
    at = reader.take(4)
    assert (reader.data[at : at + 4], reader.offset) == (b"abcd", 14)


def test_a_mark_inside_joined_bytes_is_good_after_a_release() -> None:
    reader = Reader([b"0", b"123", b"456"])
    reader.i16()
    mark = reader.mark()
    assert reader.i32() == int.from_bytes(b"2345", "big")
    reader.back_to(mark)
    reader.release()
    assert reader.offset == 2
    assert reader.i32() == int.from_bytes(b"2345", "big")
    assert reader.u8() == ord("6")


@pytest.mark.parametrize("cut", range(1, 8))
def test_what_is_peeked_at_stays_to_be_read(cut: int) -> None:
    data = bytes(range(8))
    reader = Reader([data[:cut], data[cut:]])
    reader.take(1)
    assert reader.peek(5) == data[1:6]
    assert reader.offset == 1
    assert [reader.u8() for _ in range(7)] == list(data[1:])
    with pytest.raises(Short):
        reader.peek(1)


@pytest.mark.parametrize("error_code", [0, 1, 127, 128, 300, 32767, -1, -2, -32768])
def test_an_error_code_with_the_bytes_behind_it(error_code: int) -> None:
    frame = error_code.to_bytes(2, "big", signed=True) + b"xxxx" + b"\0\0\0\7"
    for cut in range(len(frame) + 1):
        reader = Reader([part for part in (frame[:cut], frame[cut:]) if part])
        assert reader.take_error(6) == error_code
        assert reader.i32() == 7


@pytest.mark.parametrize(
    ("pieces", "stepped"),
    [([b"\0\7"], True), ([b"\1\0\0\7"], False), ([b"", b"\0\7"], False), ([b""], False)],
)
def test_a_section_without_tagged_fields_is_stepped_over(pieces: list[bytes], stepped: bool) -> None:
    reader = Reader(pieces)
    assert reader.skip_no_tags() is stepped
    assert reader.offset == (1 if stepped else 0)


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (b"gr\xc3\xbcn", "grün"),
        (b"\xc3\x28", "\ufffd("),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xf5\x80", "\ufffd\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"a\xed\xa0\x80\xed\xbf\xbfz", "a\ufffd\ufffdz"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xed\xa0\xc3\xbc", "\ufffdü"),
        (b"\xed\x9f\xbf\xff", "\ud7ff\ufffd"),
    ],
)
def test_bytes_that_are_not_utf_8_are_replaced_as_java_does(raw: bytes, read: str) -> None:
    assert text(raw) == read
