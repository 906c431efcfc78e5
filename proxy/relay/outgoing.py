"""Outgoing: the bytes that a call of a relay outputs for one side."""

from typing import final

from mypy_extensions import i64 as native

from proxy.wire.frames import Frame
from proxy.wire.reader import NOTHING


@final
class Outgoing:
    """Pieces in their order. Frames that follow each other in one chunk, and leave unchanged, are one piece:
    the chunk itself if they are all of it, as it mostly is. So they are neither copied nor sent one by one.
    """

    __slots__ = ("_chunk", "_end", "_pieces", "_start")

    def __init__(self) -> None:
        self._pieces = NOTHING
        self._chunk = b""
        """The chunk of the last frames, which are not in `_pieces` yet; empty if there are none."""
        self._start: native = 0
        self._end: native = 0

    def clear(self) -> None:
        """Begin with nothing. The lists that have been returned do not change."""
        self._pieces = NOTHING
        if self._end > 0:
            self._chunk = b""
            self._end = 0

    def add(self, pieces: list[bytes]) -> None:
        """Add bytes. The caller must not use the list again."""
        self._end_run()
        if self._pieces:
            self._pieces.extend(pieces)
        else:
            self._pieces = pieces

    def add_frame(self, frame: Frame) -> None:
        """Add a frame unchanged, or a part of it that has arrived."""
        chunk = frame.chunk
        if len(chunk) == 0:
            self.add(frame.pieces)
        elif self._end == frame.start and chunk is self._chunk:
            self._end += frame.size
        else:
            self._end_run()
            self._chunk = chunk
            self._start = frame.start
            self._end = frame.start + frame.size

    @property
    def any(self) -> bool:
        """Whether there are bytes."""
        return self._end > 0 or len(self._pieces) > 0

    @property
    def run(self) -> bytes | None:
        """All bytes, if they are frames that follow each other in one chunk, as they mostly are; else None.
        It spares the list of `pieces`.
        """
        return self._run() if self._end > 0 and len(self._pieces) == 0 else None

    @property
    def pieces(self) -> list[bytes]:
        """All bytes that have been added; the caller may keep the list."""
        self._end_run()
        return self._pieces

    def _end_run(self) -> None:
        """Make the last frames a piece."""
        if self._end == 0:
            return
        piece = self._run()
        self._chunk = b""
        self._end = 0
        if self._pieces:
            self._pieces.append(piece)
        else:
            self._pieces = [piece]

    def _run(self) -> bytes:
        """The last frames as one piece."""
        chunk = self._chunk
        if self._start > 0 or self._end < len(chunk):
            return chunk[self._start : self._end]
        return chunk
