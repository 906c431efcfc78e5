"""FrameBuffer: the parts of a large frame, until it is whole."""

from typing import Final, final

from proxy.wire.frames import Frame
from proxy.wire.reader import NOTHING

MAX_BUFFERED_FRAME_BYTES: Final = 16 << 20
"""Larger requests are cut through even if a quota might change them: memory per connection stays bounded."""


@final
class FrameBuffer:
    """The buffer of one direction of a connection, for one frame at a time."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces = NOTHING

    def add(self, part: Frame) -> Frame | None:
        """Keep the next part of a frame; returns the frame when it is whole."""
        if self._pieces:
            self._pieces.extend(part.pieces)
        else:
            self._pieces = list(part.pieces)
        if not part.complete:
            return None
        pieces = self._pieces
        self._pieces = NOTHING
        return Frame(pieces, part.size, True)
