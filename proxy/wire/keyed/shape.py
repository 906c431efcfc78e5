"""Shape: the layout of a message's fields.

check_shape() checks the lengths of arrays before a decoder that trusts them allocates memory, and finds
unknown tagged fields.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.edit import Edit, uvarint
from proxy.wire.errors import Malformed
from proxy.wire.reader import MAX_TAGS, Reader

FIXED: Final = 0
"""A field of `size` bytes."""
STRING: Final = 1
BYTES: Final = 2
"""A field of type bytes or records."""
STRUCT: Final = 3
"""`fields`, and in flexible versions `tagged` ones."""
ARRAY: Final = 4
"""`fields` has the one type of its elements."""
NULLABLE: Final = 5
"""A byte below 0 for null, else the struct that `fields` has."""


@final
class Shape:
    """A field and its parts."""

    def __init__(
        self,
        kind: int,
        size: int,
        fields: "list[Shape]",
        tagged: "dict[int, Shape]",
        flexible: bool,
        nullable: bool = False,
    ) -> None:
        self.kind: Final[native] = kind
        self.size: Final[native] = size
        self.fields: Final = fields
        self.tagged: Final = tagged
        """By tag."""
        self.flexible: Final = flexible
        self.nullable: Final = nullable
        """Whether an array may be null. A decoder rejects other fields that are null and may not be."""


def check_shape(reader: Reader, shape: Shape, end: native, edits: list[Edit]) -> None:
    """Step over a field of a frame of `end` bytes. Adds the edits that remove unknown tagged fields.

    Raises Malformed, also if an array has more elements than the frame has bytes left, or is null and may not
    be.
    """
    kind = shape.kind
    if kind == FIXED:
        reader.take(shape.size)
    elif kind == STRING:
        reader.skip_string(shape.flexible)
    elif kind == BYTES:
        reader.skip(reader.bytes_length(shape.flexible))
    elif kind == STRUCT:
        for field in shape.fields:
            check_shape(reader, field, end, edits)
        if shape.flexible:
            _check_tags(reader, shape, end, edits)
    elif kind == ARRAY:
        left = reader.nullable_count(shape.flexible)
        if left < 0 and not shape.nullable:
            raise Malformed(f"a null array before offset {reader.offset}, which may not be null")
        if left > end - reader.offset:
            raise Malformed(f"an array of {left} elements at offset {reader.offset} of {end} bytes")
        element = shape.fields[0]
        while left > 0:
            check_shape(reader, element, end, edits)
            left -= 1
    elif reader.u8() < 0x80:
        check_shape(reader, shape.fields[0], end, edits)


def _check_tags(reader: Reader, shape: Shape, end: native, edits: list[Edit]) -> None:
    count_at = reader.offset
    number = reader.uvarint()
    if number > MAX_TAGS:
        raise Malformed(f"{number} tagged fields before offset {reader.offset}; at most {MAX_TAGS} are read")
    count_end = reader.offset
    known = 0
    unknown: list[Edit] = []
    left = number
    while left > 0:
        start = reader.offset
        field = shape.tagged.get(reader.uvarint())
        size = reader.uvarint()
        stop = reader.offset + size
        if field is None:
            reader.skip(size)
            unknown.append(Edit(start, stop, b""))
        else:
            known += 1
            inner: list[Edit] = []
            check_shape(reader, field, end, inner)
            if inner or reader.offset != stop:
                raise Malformed(f"the tagged field that ends at offset {stop} has an unknown structure")
        left -= 1
    if unknown:
        edits.append(Edit(count_at, count_end, uvarint(known)))
        edits.extend(unknown)
