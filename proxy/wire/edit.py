"""Edit: change a frame in its pieces, without decoding or joining it."""

from typing import Final, final

LENGTH_SIZE: Final = 4
"""Every frame begins with its length, an int32 that does not count itself."""
NO_TAGS: Final = b"\0"
"""A section of tagged fields without a field."""
MAX_THROTTLE_MS: Final = 2**31 - 1
"""The maximum of throttle_time_ms."""


def i16(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


def i32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def i64(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def string(value: str, flexible: bool) -> bytes:
    """Encode a string that is not null."""
    return raw_string(value.encode(), flexible)


def raw_string(value: bytes, flexible: bool) -> bytes:
    """Encode a string that is not null, given in UTF-8."""
    return (uvarint(len(value) + 1) if flexible else i16(len(value))) + value


def count(value: int, flexible: bool) -> bytes:
    """Encode the number of elements that precedes an array."""
    return uvarint(value + 1) if flexible else i32(value)


@final
class Edit:
    """Bytes `start` to `end` of a frame become `new`."""

    __slots__ = ("end", "new", "start")

    def __init__(self, start: int, end: int, new: bytes) -> None:
        self.start: Final = start
        self.end: Final = end
        self.new: Final = new

    @property
    def growth(self) -> int:
        """By how many bytes the frame becomes longer."""
        return len(self.new) - (self.end - self.start)


def insert(edits: list[Edit], edit: Edit) -> None:
    """Insert an edit into a list in the order of the frame."""
    at = len(edits)
    while at > 0 and edits[at - 1].start > edit.start:
        at -= 1
    edits.insert(at, edit)


def replace(edits: list[Edit], edit: Edit) -> None:
    """Insert an edit, replacing an edit of the same range."""
    for at, other in enumerate(edits):
        if other.start == edit.start and other.end == edit.end:
            edits[at] = edit
            return
    insert(edits, edit)


def apply(pieces: list[bytes], edits: list[Edit], offset: int = 0) -> list[bytes]:
    """Return the pieces with the edits applied. The first piece begins at `offset` of the frame.

    The edits are in order, do not overlap, and begin no later than the end of the pieces.
    """
    out: list[bytes] = []
    base = offset
    which = 0
    for piece in pieces:
        at = 0
        size = len(piece)
        while which < len(edits) and edits[which].start < base + size:
            edit = edits[which]
            if edit.start >= base:
                if edit.start - base > at:
                    out.append(piece[at : edit.start - base])
                if edit.new:
                    out.append(edit.new)
            if edit.end > base + size:
                at = size
                break
            at = max(at, edit.end - base)
            which += 1
        if at == 0:
            out.append(piece)
        elif at < size:
            out.append(piece[at:])
        base += size
    while which < len(edits) and edits[which].start >= base:
        out.append(edits[which].new)
        which += 1
    return out


def with_length(edits: list[Edit], size: int) -> list[Edit]:
    """Prepend the edit of the frame's length, if it changes; `size` is the length before the edits."""
    growth = 0
    for edit in edits:
        growth += edit.growth
    return [Edit(0, LENGTH_SIZE, i32(size + growth)), *edits] if growth else edits
