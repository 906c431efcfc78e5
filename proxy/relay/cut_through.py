"""CutThrough: a frame that is too large to be held. It is read as it passes, and edited on the way."""

from typing import Final, final

from proxy.relay.exchange import Exchange
from proxy.wire.edit import LENGTH_SIZE, apply, with_length
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import View
from proxy.wire.walk import RECORDS

MAX_FORWARDABLE: Final = 2**31


@final
class CutThrough:
    """What of a frame has come and not yet gone on.

    Bytes go on as soon as the view's mark is behind them, or the view is done. What the edits made before
    that do to the frame's length is announced with the first of them; later edits keep the length.
    """

    def __init__(self, frame: Frame, exchange: Exchange, reader: Reader, view: View | None) -> None:
        self.frame: Final = frame
        self.exchange: Final = exchange
        self.reader: Final = reader
        self.view: Final = view
        """None where nobody reads the frame."""
        self.settled = False
        """Whether the quotas have judged it."""
        self.uncounted = 0
        """Bytes of the frame that are in nobody's usage yet."""
        self._start: Final = reader.mark()
        """Where reading begins again as long as the view has no mark."""
        self._waiting: list[bytes] = list(frame.pieces)
        self._sent = 0
        self._edits_sent = 0

    @property
    def waiting(self) -> int:
        """Bytes that have come and not gone on."""
        size = 0
        for piece in self._waiting:
            size += len(piece)
        return size

    def has_read(self, at: int) -> bool:
        """Whether what stands at this offset has been read for good, or all that the proxy wants to know."""
        view = self.view
        if view is None or view.done:
            return True
        mark = view.mark
        return mark is not None and 0 <= at < mark.base + mark.pos

    @property
    def forwardable(self) -> int:
        """How many of the next bytes are nothing but a part of what is passed on as it is; MAX where all."""
        view = self.view
        if self._waiting:
            return 0
        if view is None or view.done:
            return MAX_FORWARDABLE
        return view.records_left if view.phase == RECORDS and view.mark is not None else 0

    def forwarded(self, size: int) -> None:
        """So many bytes, of those that are forwardable, have gone on without coming this way."""
        view = self.view
        if view is None or view.done:
            return
        mark = view.mark
        assert mark is not None
        view.records_left -= size
        view.mark = mark.moved(size)
        self._sent += size

    def feed(self, pieces: list[bytes]) -> None:
        """Take the next part of the frame; reading goes on before the step that ran out of bytes."""
        self._waiting.extend(pieces)
        view = self.view
        if view is None or view.done:
            return
        mark = view.mark
        if mark is None:
            self.reader.back_to(self._start)
        else:
            self.reader.back_to(mark)
            self.reader.release()
            view.mark = self.reader.mark()
        self.reader.pieces.extend(pieces)
        del view.edits[view.marked_edits :]

    def take(self) -> list[bytes]:
        """What may go on now."""
        view = self.view
        if view is None or (view.done and not view.edited):
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
            view.length_sent = True
        ready = self._split(limit)
        start = self._sent
        self._sent = limit
        return apply(ready, edits, start) if edits else ready

    def _limit(self, view: View) -> int:
        """The offset in the frame before which everything may go on."""
        if view.done:
            return self._sent + self.waiting
        mark = view.mark
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
