"""FrameBuffer: a large request that a quota may have changed, so it is held until all of it is there."""

from typing import Final, final

from proxy.wire.frames import Frame

MAX_BUFFERED_FRAME_BYTES: Final = 16 << 20
"""One beyond that is cut through as it is."""


@final
class FrameBuffer:
    """Of one connection."""

    def __init__(self) -> None:
        self._pieces: list[bytes] | None = None

    @property
    def open(self) -> bool:
        """Whether a request is half through."""
        return self._pieces is not None

    def begin(self, frame: Frame) -> None:
        """Keep the first part of a frame."""
        self._pieces = list(frame.pieces)

    def go_on(self, frame: Frame) -> Frame | None:
        """Keep the next part; the frame when it is whole."""
        pieces = self._pieces
        assert pieces is not None, "asked for while a request is half through"
        pieces.extend(frame.pieces)
        if not frame.complete:
            return None
        self._pieces = None
        return Frame(pieces, frame.size, True)
