"""Shape: the lengths that a message announces are checked before a decoder trusts them."""

import pytest

from proxy.wire.edit import Edit, apply, i32, string, uvarint
from proxy.wire.errors import Malformed, ProtocolError, Short
from proxy.wire.keyed.shape import ARRAY, BYTES, FIXED, NULLABLE, STRING, STRUCT, Shape, check_shape
from proxy.wire.reader import MAX_TAGS, Reader

INT = Shape(FIXED, 4, [], {}, False)
NULLABLE_ARRAY = Shape(ARRAY, 0, [INT], {}, False, True)


def field(kind: int, flexible: bool = False, *fields: Shape) -> Shape:
    return Shape(kind, 0, list(fields), {}, flexible)


def tagged(*fields: Shape, **tags: Shape) -> Shape:
    return Shape(STRUCT, 0, list(fields), {int(name[1:]): shape for name, shape in tags.items()}, True)


def checked(shape: Shape, data: bytes) -> bytes:
    """Return the data without the removed fields. The shape must read all of it."""
    edits: list[Edit] = []
    reader = Reader([data])
    check_shape(reader, shape, len(data), edits)
    assert reader.offset == len(data)
    return b"".join(apply([data], edits))


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        (INT, i32(5)),
        (field(STRING), string("ab", False)),
        (field(STRING), b"\xff\xff"),
        (field(STRING, True), string("ab", True)),
        (field(BYTES), i32(2) + b"ab"),
        (field(BYTES, True), b"\0"),
        (field(ARRAY, False, INT), i32(2) + bytes(8)),
        (NULLABLE_ARRAY, i32(-1)),
        (Shape(ARRAY, 0, [INT], {}, True, True), b"\0"),
        (field(ARRAY, True, field(STRING, True)), b"\x03\x02a\x01"),
        (field(NULLABLE, False, INT), b"\xff"),
        (field(NULLABLE, False, INT), b"\1" + bytes(4)),
        (field(STRUCT, False, INT, field(STRING)), bytes(6)),
        (tagged(INT, t0=INT), bytes(4) + b"\1\0\4" + bytes(4)),
    ],
)
def test_what_is_as_announced(shape: Shape, data: bytes) -> None:
    assert checked(shape, data) == data
    for size in range(len(data)):
        with pytest.raises(ProtocolError):
            checked(shape, data[:size])


@pytest.mark.parametrize("data", [i32(2**31 - 1) + bytes(8), i32(9) + bytes(8)])
def test_an_array_of_more_elements_than_bytes(data: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        checked(field(ARRAY, False, field(STRUCT)), data)
    assert not isinstance(caught.value, Short)


@pytest.mark.parametrize(("flexible", "null"), [(False, i32(-1)), (True, b"\0")])
def test_a_null_array_that_may_not_be_null(flexible: bool, null: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        checked(field(ARRAY, flexible, INT), null)
    assert not isinstance(caught.value, Short)


def test_unknown_tagged_fields_are_removed() -> None:
    unknown = b"\x07\x03abc"
    known = b"\0\4" + bytes(4)
    assert checked(tagged(INT, t0=INT), i32(1) + b"\3" + unknown + known + unknown) == i32(1) + b"\1" + known
    array = field(ARRAY, True, tagged(INT))
    assert checked(array, b"\2" + i32(1) + b"\1" + unknown) == b"\2" + i32(1) + b"\0"


@pytest.mark.parametrize(
    "data",
    [
        b"\1\0\5" + bytes(5),
        b"\1\0\3" + bytes(4),
        b"\1\1\7" + bytes(4) + b"\1\7\0",
        uvarint(MAX_TAGS + 1) + bytes(2 * MAX_TAGS + 2),
    ],
    ids=["longer", "shorter", "unknown field inside", "too many"],
)
def test_a_tagged_field_that_is_not_of_its_size(data: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        checked(tagged(t0=INT, t1=tagged(INT)), data)
    assert not isinstance(caught.value, Short)
