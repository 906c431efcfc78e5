"""Reader: the one checked cursor over a frame.

A frame consists of the pieces that the socket delivered, and is never joined. The reader joins only the bytes
of a field that lies in two pieces. It skips record batches without touching them.

`native` is an int of 64 bits, which compiled code keeps as the processor does; no field of Kafka's is longer.
"""

import re
from typing import Final, final

from mypy_extensions import i64 as native
from mypy_extensions import mypyc_attr

from proxy.wire.errors import Malformed, Short

MAX_LENGTH: Final = 2**31 - 1
"""The largest length or count that the protocol can state: an int32."""
MAX_TAGS: Final = 64
"""Tagged fields of one structure. Kafka's have ten at most; a client may send millions, of two bytes each."""
NOTHING: Final[list[bytes]] = []
"""No pieces; never changed."""
SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""A surrogate in UTF-8's scheme, or its first two bytes: Python replaces each of their bytes."""
REPLACED: Final = "\ufffd".encode()


@final
class Mark:
    """A place to which a reader can go back."""

    __slots__ = ("base", "data", "end", "next_at", "next_piece", "pos")

    def __init__(
        self, data: bytes, pos: native, end: native, base: native, next_piece: native, next_at: native
    ) -> None:
        self.data: Final = data
        self.pos: Final = pos
        self.end: Final = end
        self.base: Final = base
        self.next_piece: Final = next_piece
        self.next_at: Final = next_at

    def moved(self, size: native) -> "Mark":
        """Return the same place in the remaining bytes, after `size` bytes of the frame were forwarded."""
        return Mark(self.data, self.pos, self.end, self.base + size, self.next_piece, self.next_at)


@final
@mypyc_attr(free_list_len=1)
class Reader:
    """Reads field after field. A read beyond the bytes that have arrived raises Short.

    A reader can be used for several frames: start() begins with the next one, and stop() drops it.
    """

    __slots__ = ("base", "data", "end", "next_at", "next_piece", "pieces", "pos")

    def __init__(self, pieces: list[bytes], start: native = 0) -> None:
        self.pieces = pieces
        """May grow at its end while the frame is on its way."""
        self.data = b""
        self.pos: native = 0
        self.end: native = 0
        self.base: native = 0
        """The offset of data[0] in the frame."""
        self.next_piece: native = 1
        self.next_at: native = 0
        """The place at which reading continues after `data`: pieces[next_piece][next_at]."""
        self.start(pieces, start)

    def start(self, pieces: list[bytes], start: native = 0) -> None:
        """Read these pieces, from an offset on."""
        data = pieces[0] if pieces else b""
        self.pieces = pieces
        self.data = data
        self.pos = 0
        self.end = len(data)
        self.base = 0
        self.next_piece = 1
        self.next_at = 0
        if start <= self.end:
            self.pos = start
        else:
            self.skip(start)

    def start_within(self, chunk: bytes, begin: native, size: native, start: native) -> None:
        """Read the `size` bytes of a chunk from `begin` on, from an offset within them on."""
        self.pieces = NOTHING
        self.data = chunk
        self.pos = begin + start
        self.end = begin + size
        self.base = -begin
        self.next_piece = 1
        self.next_at = 0

    def stop(self) -> None:
        """Drop the references to the frame's bytes."""
        self.pieces = NOTHING
        self.data = b""
        self.pos = 0
        self.end = 0
        self.base = 0
        self.next_piece = 1
        self.next_at = 0

    @property
    def offset(self) -> native:
        """The offset in the frame of the next byte to be read."""
        return self.base + self.pos

    def mark(self) -> Mark:
        return Mark(self.data, self.pos, self.end, self.base, self.next_piece, self.next_at)

    def back_to(self, mark: Mark) -> None:
        self.data = mark.data
        self.pos = mark.pos
        self.end = mark.end
        self.base = mark.base
        self.next_piece = mark.next_piece
        self.next_at = mark.next_at

    def release(self) -> None:
        """Drop the pieces that have been read; earlier marks become invalid."""
        del self.pieces[: self.next_piece]
        self.next_piece = 0

    def take(self, size: native) -> native:
        """Step over `size` bytes and return where, in `data`, they begin."""
        start = self.pos
        stop = start + size
        if stop <= self.end:
            self.pos = stop
            return start
        return self._take_across(size)

    def take_error(self, size: native) -> native:
        """Step over `size` bytes of which the first two are an error_code, and return it: one step is cheaper
        than two.
        """
        at = self.take(size)
        high: native = self.data[at]
        low: native = self.data[at + 1]
        if high >= 128:
            high -= 256
        return high * 256 + low

    def peek(self, size: native) -> bytes:
        """Return the next `size` bytes without stepping over them."""
        if self.pos + size <= self.end:
            return self.data[self.pos : self.pos + size]
        mark = self.mark()
        at = self.take(size)
        data = self.data[at : at + size]
        self.back_to(mark)
        return data

    def _take_across(self, size: native) -> native:
        if size > MAX_LENGTH:
            raise Malformed(f"a length of {size} bytes at offset {self.offset}, which is too large")
        if self.pos == self.end:
            self._advance()
            if size <= self.end - self.pos:
                start = self.pos
                self.pos = start + size
                return start
        joined = self.data[self.pos : self.end]
        next_piece = self.next_piece
        next_at = self.next_at
        while len(joined) < size:
            if next_piece >= len(self.pieces):
                raise Short(f"{size} bytes wanted at offset {self.offset}, {len(joined)} are there")
            piece = self.pieces[next_piece]
            stop = next_at + size - len(joined)
            if stop < len(piece):
                joined += piece[next_at:stop]
                next_at = stop
            else:
                joined += piece[next_at:]
                next_piece += 1
                next_at = 0
        self.base += self.pos
        self.data = joined
        self.pos = self.end = size
        self.next_piece = next_piece
        self.next_at = next_at
        return 0

    def _advance(self) -> None:
        """Make the next piece the current one; `data` is used up."""
        if self.next_piece >= len(self.pieces):
            raise Short(f"no byte at offset {self.offset}")
        piece = self.pieces[self.next_piece]
        self.base += self.end - self.next_at
        self.data = piece
        self.pos = self.next_at
        self.end = len(piece)
        self.next_piece += 1
        self.next_at = 0

    def skip(self, size: native) -> None:
        """Step over `size` bytes without looking at them."""
        left = size
        while left > self.end - self.pos:
            left -= self.end - self.pos
            self.pos = self.end
            self._advance()
        self.pos += left

    def skip_available(self, size: native) -> native:
        """Step over up to `size` bytes, as many as are there; return how many are still to come."""
        left = size
        while left > self.end - self.pos:
            left -= self.end - self.pos
            self.pos = self.end
            if self.next_piece >= len(self.pieces):
                return left
            self._advance()
        self.pos += left
        return 0

    def u8(self) -> native:
        at = self.take(1)  # may change `data`
        return self.data[at]

    def i16(self) -> native:
        at = self.take(2)  # may change `data`
        return i16_at(self.data, at)

    def i32(self) -> native:
        at = self.take(4)  # may change `data`
        return i32_at(self.data, at)

    def i64(self) -> native:
        high = self.i32()
        low = self.i32()
        return (high << 32) | (low & 0xFFFFFFFF)

    def uvarint(self) -> native:
        """An unsigned varint of at most five bytes and 31 bits (lengths, counts and tags are no larger)."""
        pos = self.pos
        if pos < self.end:
            byte: native = self.data[pos]
            if byte < 0x80:
                self.pos = pos + 1
                return byte
            if pos + 1 < self.end:
                second: native = self.data[pos + 1]
                if second < 0x80:
                    self.pos = pos + 2
                    return (second << 7) | (byte & 0x7F)
        return self._long_uvarint()

    def _long_uvarint(self) -> native:
        """Read a varint that has several bytes, or begins in the next piece."""
        value: native = 0
        shift: native = 0
        while shift <= 28:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > MAX_LENGTH:
                    break
                return value
            shift += 7
        raise Malformed(f"a varint over 31 bits before offset {self.offset}")

    def length(self, flexible: bool) -> native:
        """The length of a string (int16, or compact); -1 is null."""
        size = self.uvarint() - 1 if flexible else self.i16()
        if size < -1:
            raise Malformed(f"a string of length {size} before offset {self.offset}")
        return size

    def raw_string(self, flexible: bool) -> bytes:
        """A string's bytes; null reads as empty."""
        size = self.length(flexible)
        if size <= 0:
            return b""
        at = self.take(size)
        return self.data[at : at + size]

    def string(self, flexible: bool) -> str:
        """A string; null reads as empty."""
        return text(self.raw_string(flexible))

    def skip_string(self, flexible: bool) -> None:
        size = self.length(flexible)
        if size > 0:
            self.skip(size)

    def count(self, flexible: bool) -> native:
        """The number of an array's elements; null reads as none."""
        count = self.nullable_count(flexible)
        if count > 0:  # a conditional expression would create an int
            return count
        return 0

    def nullable_count(self, flexible: bool) -> native:
        """The number of an array's elements, or -1 for null."""
        count = self.uvarint() - 1 if flexible else self.i32()
        if count < -1:
            raise Malformed(f"an array of {count} elements before offset {self.offset}")
        return count

    def bytes_length(self, flexible: bool) -> native:
        """The length of a bytes or records field; null reads as empty."""
        size = self.uvarint() - 1 if flexible else self.i32()
        if size < -1:
            raise Malformed(f"bytes of length {size} before offset {self.offset}")
        if size > 0:
            return size
        return 0

    def uuid(self) -> bytes:
        at = self.take(16)
        return self.data[at : at + 16]

    def skip_no_tags(self) -> bool:
        """Step over a tagged-field section without fields. Return False, and step over nothing, if there are
        fields, or the section is in the next piece.
        """
        pos = self.pos
        if pos < self.end:
            fields: native = self.data[pos]
            if fields == 0:
                self.pos = pos + 1
                return True
        return False

    def skip_tags(self) -> None:
        """Step over a tagged-field section."""
        count = self.uvarint()
        if count > MAX_TAGS:
            raise Malformed(f"{count} tagged fields before offset {self.offset}; at most {MAX_TAGS} are read")
        while count > 0:
            self.uvarint()
            self.skip(self.uvarint())
            count -= 1


def i16_at(data: bytes, at: native) -> native:
    """Return the signed number (big-endian) in the two bytes from `at` on."""
    high: native = data[at]
    low: native = data[at + 1]
    value = (high << 8) | low
    return value - 0x10000 if value & 0x8000 else value


def i32_at(data: bytes, at: native) -> native:
    """Return the signed number (big-endian) in the four bytes from `at` on."""
    value = u32_at(data, at)
    return value - 0x100000000 if value & 0x80000000 else value


def u32_at(data: bytes, at: native) -> native:
    """Return the unsigned number (big-endian) in the four bytes from `at` on."""
    first: native = data[at]
    second: native = data[at + 1]
    third: native = data[at + 2]
    fourth: native = data[at + 3]
    return (first << 24) | (second << 16) | (third << 8) | fourth


def text(raw: bytes) -> str:
    """Decode UTF-8, the encoding of Kafka's strings. As in Kafka, U+FFFD replaces bytes that are not UTF-8:
    one for each longest part of a character, and one for a whole surrogate, as Java has it.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return SURROGATE.sub(REPLACED, raw).decode(errors="replace")
