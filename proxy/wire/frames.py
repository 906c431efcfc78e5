"""Frames: chunks from a socket become Kafka's length-prefixed frames, without being joined.

A frame up to CUT_THROUGH_BYTES is handed out whole. A larger one is cut through: handed out once
`first_part_bytes` of it are there, and again whenever more has arrived, so that neither a frame's length nor
what a peer announces decides the memory of a connection. Nothing of a frame is handed out before: a broker
allocates a frame's whole length as soon as it reads the length, so a bare length must never be forwarded.
Small chunks are joined, so that a peer does not decide how many pieces a frame has.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import FrameTooLarge
from proxy.wire.reader import NOTHING, Reader, u32_at

CUT_THROUGH_BYTES: Final = 1 << 20
JOINED_BYTES: Final = 4096
"""Chunks below this are joined while they wait, and no less of a large frame is handed out at a time."""


@final
class Frame:
    """One frame in pieces, its length in front. It is valid until the splitter is asked for the next one."""

    __slots__ = ("complete", "pieces", "size")

    def __init__(self, pieces: list[bytes], size: native, complete: bool) -> None:
        self.pieces = pieces
        """What has arrived since the frame was handed out last; everything, where it is complete at once.
        The list is the taker's own."""
        self.size = size
        """Bytes in all, the length's own four included."""
        self.complete = complete


def start_reading(frame: Frame, kept: Reader) -> Reader:
    """A reader of a frame that has just begun, behind its length: where the frame is whole it is `kept`,
    until the caller stops it; else it is the frame's own, whose list of pieces may grow.
    """
    if not frame.complete:
        return Reader(list(frame.pieces), LENGTH_SIZE)
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
        """The longest frame that is handed out whole."""
        self._chunk = b""
        self._at: native = 0
        """How much of the chunk has been handed out."""
        self._more: Final[list[bytes]] = []
        """The chunks after that one; mostly none, so that a frame costs no list but its own."""
        self._whole: Final = Frame(NOTHING, 0, True)
        """Stands for every frame that is handed out whole: one at a time."""
        self._buffered: native = 0
        self._open: Frame | None = None
        self._missing: native = 0

    @property
    def buffered(self) -> native:
        """Bytes fed and not yet handed out."""
        return self._buffered

    @property
    def in_frame(self) -> bool:
        """Whether a frame has been handed out in part and its rest is still to come."""
        return self._open is not None

    @property
    def missing(self) -> native:
        """Bytes still to be fed of the frame that is being cut through, all that were fed being handed out;
        else 0.
        """
        return self._missing if self._open is not None and self._buffered == 0 else 0

    def skip_missing(self, size: native) -> None:
        """So many of the missing bytes are forwarded without being fed."""
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
        else:
            more.append(chunk)
        self._buffered += len(chunk)

    def next(self) -> Frame | None:
        """The next frame, or the next part of the one that is being cut through, or None."""
        if self._open is not None:
            return self._next_part(self._open)
        if self._buffered < LENGTH_SIZE:
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
            frame.pieces = self._take(size)
            frame.size = size
            return frame
        if size > self.whole_bytes and self._buffered >= self._first_part_bytes:
            self._missing = size - self._buffered
            self._open = Frame(self._take(self._buffered), size, False)
            return self._open
        return None

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
        """The next `size` bytes, which are there."""
        head = self._chunk[self._at : self._at + size]
        which = 0
        while len(head) < size:
            head += self._more[which][: size - len(head)]
            which += 1
        return head

    def _take(self, size: native) -> list[bytes]:
        """The next `size` bytes, which are there, as pieces; a whole chunk is not copied."""
        self._buffered -= size
        pieces = [self._take_chunk(size)]
        left = size - len(pieces[0])
        while left > 0:
            piece = self._take_chunk(left)
            pieces.append(piece)
            left -= len(piece)
        return pieces

    def _take_chunk(self, most: native) -> bytes:
        """The rest of the first chunk, or as much of it as is wanted."""
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
