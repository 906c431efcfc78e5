"""CutThrough: a frame that is too large to be buffered. The relay reads and edits it while it forwards it."""

from typing import Final, final

from proxy.relay.exchange import Exchange
from proxy.wire.edit import LENGTH_SIZE, apply, with_length
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import View
from proxy.wire.walk import RECORDS

MAX_FORWARDABLE: Final = 2**31
"""More bytes than any frame has."""


@final
class CutThrough:
    """The part of a frame that has arrived and has not been forwarded.

    Bytes may leave when the view's mark is behind them, or when the view is done. The first of them announce
    the frame's length with all edits made until then; later edits keep the length.
    """

    def __init__(self, frame: Frame, exchange: Exchange, reader: Reader, view: View | None) -> None:
        self.frame: Final = frame
        self.exchange: Final = exchange
        self.reader: Final = reader
        self.view: Final = view
        """None if the proxy does not read the frame."""
        self.settled = False
        """Whether the quotas have charged the frame's size."""
        self.at_start = True
        """Whether only the first part has arrived."""
        self.withheld = False
        """Whether the client gets another response instead of this frame."""
        self.uncounted = 0
        """Bytes of the frame that no usage has counted yet."""
        self._start: Final = reader.mark()
        """The offset at which reading continues while the cursor has no mark."""
        self._waiting: list[bytes] = list(frame.pieces)
        self._sent = 0
        self._edits_sent = 0

    @property
    def waiting(self) -> int:
        """Bytes that have arrived and have not been forwarded."""
        size = 0
        for piece in self._waiting:
            size += len(piece)
        return size

    def has_read(self, at: int) -> bool:
        """Whether the field at this offset has been read completely, or the proxy needs nothing more."""
        view = self.view
        if view is None or view.cursor.done:
            return True
        mark = view.cursor.mark
        return mark is not None and 0 <= at < mark.base + mark.pos

    @property
    def forwardable(self) -> int:
        """The number of following bytes that the proxy does not have to read; MAX_FORWARDABLE if it does not
        have to read any.
        """
        if self._waiting or self.withheld:
            return 0
        view = self.view
        if view is None or view.cursor.done:
            return MAX_FORWARDABLE
        cursor = view.cursor
        return cursor.records_left if cursor.phase == RECORDS and cursor.mark is not None else 0

    def forwarded(self, size: int) -> None:
        """Skip bytes, of those that are forwardable, that have been forwarded without being fed."""
        view = self.view
        if view is None or view.cursor.done:
            return
        cursor = view.cursor
        mark = cursor.mark
        assert mark is not None, "nothing is forwardable without it"
        cursor.records_left -= size
        cursor.mark = mark.moved(size)
        self._sent += size

    def feed(self, pieces: list[bytes]) -> None:
        """Take the next part of the frame. Reading continues before the step that ran out of bytes."""
        self.at_start = False
        self._waiting.extend(pieces)
        view = self.view
        if view is None or view.cursor.done:
            return
        cursor = view.cursor
        mark = cursor.mark
        if mark is None:
            self.reader.back_to(self._start)
        else:
            self.reader.back_to(mark)
            self.reader.release()
            cursor.mark = self.reader.mark()
        self.reader.pieces.extend(pieces)
        del view.edits[cursor.marked_edits :]

    def take(self) -> list[bytes]:
        """Return the bytes that may leave."""
        view = self.view
        if view is None or (view.cursor.done and not view.edited):
            ready = self._waiting
            self._waiting = []
            return ready
        limit = self._limit(view)
        if limit <= self._sent:
            return []
        edits = [edit for edit in view.edits[self._edits_sent :] if edit.start < limit]
        self._edits_sent += len(edits)
        if self._sent == 0:
            edits = with_length(edits, self.frame.size - LENGTH_SIZE)
            view.cursor.length_sent = True
        ready = self._split(limit)
        start = self._sent
        self._sent = limit
        return apply(ready, edits, start) if edits else ready

    def _limit(self, view: View) -> int:
        """The offset in the frame before which all bytes may leave."""
        if view.cursor.done:
            return self._sent + self.waiting
        mark = view.cursor.mark
        return 0 if mark is None else mark.base + mark.pos

    def _split(self, limit: int) -> list[bytes]:
        """Remove the waiting bytes before `limit` and return them."""
        ready: list[bytes] = []
        left = limit - self._sent
        while left > 0:
            piece = self._waiting[0]
            if len(piece) <= left:
                ready.append(piece)
                self._waiting.pop(0)
                left -= len(piece)
            else:
                ready.append(piece[:left])
                self._waiting[0] = piece[left:]
                left = 0
        return ready
