"""Frames: chunks from a socket become Kafka's length-prefixed frames, without being joined.

A frame up to CUT_THROUGH_BYTES is handed out whole. A larger one is cut through: handed out once `hold_bytes`
of it are there, and again whenever more has come, so that memory per connection is bounded by neither the
frame's length nor what a peer announces. Nothing of a frame is handed out before `hold_bytes` of it are
there: a broker allocates a frame's whole length as soon as it reads it, so a bare length must never be passed
on. Nor is how many pieces a frame has left to the peer: small chunks are joined.
"""

from typing import Final, final

from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import FrameTooLarge

CUT_THROUGH_BYTES: Final = 1 << 20
JOINED_BYTES: Final = 4096
"""Chunks below this are joined while they wait, and no less of a large frame is handed out at a time."""


@final
class Frame:
    """One frame in pieces, its length in front."""

    __slots__ = ("complete", "pieces", "size")

    def __init__(self, pieces: list[bytes], size: int, complete: bool) -> None:
        self.pieces = pieces
        """What has arrived since the frame was handed out last; everything, where it is complete at once."""
        self.size: Final = size
        """Bytes in all, the length's own four included."""
        self.complete = complete


@final
class FrameSplitter:
    """Feed it chunks, then take frames until there is none.

    Raises FrameTooLarge for a length that is negative or over `max_frame_bytes`.
    """

    __slots__ = ("_at", "_buffered", "_chunks", "_hold_bytes", "_max_frame_bytes", "_missing", "_open")

    def __init__(self, max_frame_bytes: int, hold_bytes: int = CUT_THROUGH_BYTES) -> None:
        self._max_frame_bytes: Final = max_frame_bytes
        self._hold_bytes: Final = hold_bytes
        self._chunks: list[bytes] = []
        self._at = 0
        self._buffered = 0
        self._open: Frame | None = None
        self._missing = 0

    @property
    def buffered(self) -> int:
        """Bytes fed and not yet handed out."""
        return self._buffered

    @property
    def in_frame(self) -> bool:
        """Whether a frame has been handed out in part and its rest is still to come."""
        return self._open is not None

    def feed(self, chunk: bytes) -> None:
        chunks = self._chunks
        if chunks and len(chunk) < JOINED_BYTES and len(chunks[-1]) < JOINED_BYTES:
            chunks[-1] += chunk
        else:
            chunks.append(chunk)
        self._buffered += len(chunk)

    def next(self) -> Frame | None:
        """The next frame, or the next part of the one that is being cut through, or None."""
        if self._open is not None:
            return self._next_part(self._open)
        if self._buffered < LENGTH_SIZE:
            return None
        head = self._chunks[0]
        at = self._at
        if len(head) - at < LENGTH_SIZE:
            head = self._peek(LENGTH_SIZE)
            at = 0
        length = (head[at] << 24) | (head[at + 1] << 16) | (head[at + 2] << 8) | head[at + 3]
        if length > self._max_frame_bytes:
            raise FrameTooLarge(
                f"a frame announces {_signed(length)} bytes; the limit is {self._max_frame_bytes}",
                head[at : at + LENGTH_SIZE],
            )
        size = LENGTH_SIZE + length
        if self._buffered >= size:
            return Frame(self._take(size), size, True)
        if size > CUT_THROUGH_BYTES and self._buffered >= self._hold_bytes:
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

    def _peek(self, size: int) -> bytes:
        """The next `size` bytes, which are there."""
        head = self._chunks[0][self._at : self._at + size]
        which = 1
        while len(head) < size:
            head += self._chunks[which][: size - len(head)]
            which += 1
        return head

    def _take(self, size: int) -> list[bytes]:
        """The next `size` bytes, which are there, as pieces; a whole chunk is not copied."""
        self._buffered -= size
        pieces: list[bytes] = []
        chunks = self._chunks
        left = size
        while left > 0:
            chunk = chunks[0]
            ready = len(chunk) - self._at
            if ready > left:
                pieces.append(chunk[self._at : self._at + left])
                self._at += left
                return pieces
            pieces.append(chunk if self._at == 0 else chunk[self._at :])
            chunks.pop(0)
            self._at = 0
            left -= ready
        return pieces


def _signed(length: int) -> int:
    return length - (1 << 32) if length >> 31 else length
