"""Frames: chunks from a socket become Kafka's length-prefixed frames, without being joined.

The splitter returns a frame of up to CUT_THROUGH_BYTES whole. It cuts a larger one through: it returns the
first part when `first_part_bytes` have arrived, and then each part that arrives. So the memory of a
connection depends neither on the length of a frame nor on the length that a peer announces. It
returns nothing earlier, because a broker allocates the whole length of a frame as soon as it reads the
length: a length must never be forwarded alone. Small chunks are joined, so that a peer cannot split a frame
into many pieces.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import FrameTooLarge
from proxy.wire.reader import NOTHING, Reader, u32_at

CUT_THROUGH_BYTES: Final = 1 << 20
"""The largest frame that is returned whole. By default, producers' requests are about as large at most
(max.request.size).
"""
JOINED_BYTES: Final = 4096
"""Smaller chunks are joined while they wait, and a part of a large frame is at least as large."""


@final
class Frame:
    """One frame, including its length. It is valid until the next call of the splitter."""

    __slots__ = ("_pieces", "chunk", "complete", "size", "start")

    def __init__(self, pieces: list[bytes], size: native, complete: bool) -> None:
        self._pieces = pieces
        self.chunk = b""
        """The chunk that has the whole frame; empty if none has, or if `pieces` has been used."""
        self.start: native = 0
        """The offset of the frame in `chunk`."""
        self.size = size
        """The bytes of the whole frame, including the four of its length."""
        self.complete = complete

    def lie_in(self, chunk: bytes, start: native, size: native) -> None:
        """Become a whole frame that is a part of `chunk`."""
        self.chunk = chunk
        self.start = start
        self.size = size

    @property
    def pieces(self) -> list[bytes]:
        """The bytes that have arrived since the frame was returned last; all bytes if it was complete at
        once. The caller owns the list. For most frames nobody asks for it, and no bytes are copied.
        """
        chunk = self.chunk
        if len(chunk) > 0:
            whole = self.start == 0 and self.size == len(chunk)
            self._pieces = [chunk if whole else chunk[self.start : self.start + self.size]]
            self.chunk = b""
        return self._pieces

    @pieces.setter
    def pieces(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self.chunk = b""


def start_reading(frame: Frame, kept: Reader) -> Reader:
    """Return a reader of a frame, behind the frame's length.

    If the frame is whole, it is `kept`, until the caller stops it. Otherwise it is a new one, whose list of
    pieces may grow.
    """
    if not frame.complete:
        return Reader(list(frame.pieces), LENGTH_SIZE)
    if len(frame.chunk) > 0:
        kept.start_within(frame.chunk, frame.start, frame.size, LENGTH_SIZE)
    else:
        kept.start(frame.pieces, LENGTH_SIZE)
    return kept


@final
class FrameSplitter:
    """Feed it chunks, then take frames until there is none.

    Raises FrameTooLarge for a length that is negative or over `max_frame_bytes`.
    """

    __slots__ = (
        "_at",
        "_buffered",
        "_chunk",
        "_first_part_bytes",
        "_max_frame_bytes",
        "_missing",
        "_more",
        "_open",
        "_whole",
        "whole_bytes",
    )

    def __init__(self, max_frame_bytes: native, first_part_bytes: native = CUT_THROUGH_BYTES) -> None:
        self._max_frame_bytes: Final = max_frame_bytes
        self._first_part_bytes: Final = first_part_bytes
        self.whole_bytes: native = CUT_THROUGH_BYTES
        """The length of the longest frame that is returned whole."""
        self._chunk = b""
        self._at: native = 0
        """How many bytes of the chunk have been returned."""
        self._more = NOTHING
        """The chunks after `_chunk`; usually there are none, so that a frame needs no list but its own."""
        self._whole: Final = Frame(NOTHING, 0, True)
        """The object of every whole frame; there is one at a time."""
        self._buffered: native = 0
        self._open: Frame | None = None
        """The frame that is cut through, until its last part is returned."""
        self._missing: native = 0
        """The bytes of this frame that have not been returned, nor forwarded without being fed."""

    @property
    def buffered(self) -> native:
        """The number of bytes that have been fed and not returned yet."""
        return self._buffered

    @property
    def in_frame(self) -> bool:
        """Whether a part of a frame has been returned and the rest has not."""
        return self._open is not None

    @property
    def missing(self) -> native:
        """The bytes that have not been fed yet of a frame that is cut through; 0 if there is no such frame,
        or if fed bytes have not been returned.
        """
        return self._missing if self._open is not None and self._buffered == 0 else 0

    def skip_missing(self, size: native) -> None:
        """Count bytes of the missing ones that are forwarded without being fed."""
        self._missing -= size

    def feed(self, chunk: bytes) -> None:
        more = self._more
        if self._buffered == 0:
            self._chunk = chunk
            self._at = 0
        elif len(chunk) < JOINED_BYTES and not more and len(self._chunk) < JOINED_BYTES:
            self._chunk += chunk
        elif len(chunk) < JOINED_BYTES and more and len(more[-1]) < JOINED_BYTES:
            more[-1] += chunk
        elif more:
            more.append(chunk)
        else:
            self._more = [chunk]
        self._buffered += len(chunk)

    def next(self) -> Frame | None:
        """Return the next frame, or the next part of the one that is cut through, or None."""
        if self._open is not None:
            return self._next_part(self._open)
        if self._buffered < LENGTH_SIZE:
            self._whole.chunk = b""
            return None
        head = self._chunk
        at = self._at
        if len(head) - at < LENGTH_SIZE:
            head = self._peek(LENGTH_SIZE)
            at = 0
        length = u32_at(head, at)
        if length > self._max_frame_bytes:
            raise FrameTooLarge(
                f"a frame announces {_signed(length)} bytes; the limit is {self._max_frame_bytes}",
                head[at : at + LENGTH_SIZE],
            )
        size = LENGTH_SIZE + length
        if self._buffered >= size:
            frame = self._whole
            start = self._at
            if start + size <= len(self._chunk):
                frame.lie_in(self._chunk, start, size)
                self._skip(size)
            else:
                frame.pieces = self._take(size)
                frame.size = size
            return frame
        if size > self.whole_bytes and self._buffered >= self._first_part_bytes:
            return self._open_frame(size)
        return None

    def first_part(self, larger_than: native, least: native) -> Frame | None:
        """Return the first part of a frame of more than `larger_than` bytes, if it has at least `least` bytes
        and the frame is not complete, whatever `whole_bytes` says. put_back() undoes this.
        """
        if self._open is not None or self._buffered < max(least, LENGTH_SIZE):
            return None
        size = LENGTH_SIZE + u32_at(self._peek(LENGTH_SIZE), 0)
        if size <= larger_than or size <= self._buffered:
            return None
        return self._open_frame(size)

    def _open_frame(self, size: native) -> Frame:
        """Return the first part of a frame of this size: all bytes that have arrived."""
        self._missing = size - self._buffered
        self._open = Frame(self._take(self._buffered), size, False)
        return self._open

    def put_back(self, frame: Frame) -> None:
        """Return a frame, or its first part, to its place: it is the next one again."""
        pieces = frame.pieces
        for piece in pieces:
            self._buffered += len(piece)
        if self._at < len(self._chunk):
            pieces.append(self._chunk[self._at :])
        pieces += self._more
        self._chunk = pieces[0]
        self._at = 0
        self._more = pieces[1:] if len(pieces) > 1 else NOTHING
        self._open = None

    def _next_part(self, frame: Frame) -> Frame | None:
        if self._buffered < JOINED_BYTES and self._buffered < self._missing:
            return None
        ready = self._buffered if self._buffered < self._missing else self._missing
        frame.pieces = self._take(ready)
        self._missing -= ready
        if self._missing == 0:
            frame.complete = True
            self._open = None
        return frame

    def _peek(self, size: native) -> bytes:
        """Return the next `size` bytes, which have arrived."""
        head = self._chunk[self._at : self._at + size]
        which = 0
        while len(head) < size:
            head += self._more[which][: size - len(head)]
            which += 1
        return head

    def _skip(self, size: native) -> None:
        """Count the next `size` bytes of the first chunk as returned."""
        self._buffered -= size
        self._at += size
        if self._at == len(self._chunk):
            self._chunk = self._more.pop(0) if self._more else b""
            self._at = 0

    def _take(self, size: native) -> list[bytes]:
        """Return the next `size` bytes, which have arrived, as pieces; a whole chunk is not copied."""
        self._buffered -= size
        pieces = [self._take_chunk(size)]
        left = size - len(pieces[0])
        while left > 0:
            piece = self._take_chunk(left)
            pieces.append(piece)
            left -= len(piece)
        return pieces

    def _take_chunk(self, most: native) -> bytes:
        """Return at most `most` bytes of the first chunk."""
        chunk = self._chunk
        at = self._at
        if len(chunk) - at > most:
            self._at = at + most
            return chunk[at : at + most]
        self._chunk = self._more.pop(0) if self._more else b""
        self._at = 0
        return chunk if at == 0 else chunk[at:]


def _signed(length: native) -> native:
    return length - (1 << 32) if length >> 31 else length
