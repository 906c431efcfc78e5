"""BulkReads: how many bytes all connections read in one turn of the event loop.

A read brings up to 256 KiB, which the proxy copies twice, and the event loop reads every socket that has
data. Without a bound, all other connections wait while a client with a hundred connections sends large
requests, or receives large responses.
"""

import asyncio
from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.identity import ClientKey
from proxy.server.connection.pauses import BULK, Pauses

BULK_BYTES: Final = 32 << 10
"""A read of at least this size counts. The bounds of requests and responses of a turn apply to smaller ones.
"""
TURN_BYTES: Final[native] = 1 << 20
"""Bytes of all sockets in one turn. After that, the sockets that have had such a read are paused. They take
about half a millisecond.
"""
FEW_BYTES: Final[native] = 256 << 10
"""A turn that reads at most this much is short. BulkReads does not wait for its end, because a call of the
event loop costs CPU time: the next turn may read as much less.
"""
SPLICED_SHIFT: Final = 2
"""Bytes that are spliced from one socket to the other take a quarter of the time: their number is shifted
right by this.
"""
RESUMED: Final = 4
"""The most paused sockets that are read again in each turn."""
NO_TURN: Final[native] = 0
NOBODY: Final[ClientKey] = ("", "")
"""In place of a client, before the first read."""


@final
class BulkReader:
    """One socket of a connection, a client's or a broker's."""

    __slots__ = ("client", "pauses", "size", "transport", "turn")

    def __init__(self, pauses: Pauses) -> None:
        self.pauses: Final = pauses
        self.transport: asyncio.Transport | None = None
        """None before the first read that counts, and after the end of the connection."""
        self.client = NOBODY
        """The client of the connection, with the last such read."""
        self.turn: native = NO_TURN
        """The number of the last turn with such a read; NO_TURN if the socket is idle, paused or new."""
        self.size: native = 0
        """Bytes of such reads in the last turn that had one."""

    def pause(self, on: bool) -> None:
        """Pause or resume the socket."""
        self.pauses.change(self.transport, BULK, on)


@final
class BulkReads:
    """Shared by all connections of an event loop. Clients have turns in the order in which they were paused,
    and within a client its sockets.

    Sockets that have had such reads are in use, idle or paused. Those in use are paused when a turn has read
    its bytes. The idle ones, which may be thousands, are paused only if one of them has data, too.
    """

    def __init__(self, next_turn: Callable[[Callable[[], None]], object]) -> None:
        """`next_turn`: calls a function in the next turn of the event loop, before the sockets are read."""
        self._next_turn: Final = next_turn
        self._armed = False
        """Whether a call in the next turn is awaited."""
        self._left: native = TURN_BYTES
        """The bytes that may still be read in this turn."""
        self._turn: native = NO_TURN + 1
        """The number of this turn."""
        self._over = False
        """Whether this turn has read its bytes."""
        self._used: Final[dict[BulkReader, None]] = {}
        """The sockets that have had such reads in this turn or the last one, or have just been resumed."""
        self._idle: Final[dict[BulkReader, None]] = {}
        self._paused: Final[dict[ClientKey, dict[BulkReader, None]]] = {}
        """By client, in the order of their turns."""

    def took(self, reader: BulkReader, size: int, client: ClientKey) -> None:
        """Note a read of at least BULK_BYTES; it may pause the socket, and others."""
        reader.client = client
        if reader.turn != self._turn:
            if reader.turn == NO_TURN:
                self._idle.pop(reader, None)
                self._used[reader] = None
            reader.turn = self._turn
            reader.size = 0
        reader.size += size
        self._left -= size
        if self._left < TURN_BYTES - FEW_BYTES:
            self._arm()
            # The first idle socket that has data is read before the others are paused.
            reserve: native = FEW_BYTES if self._idle else 0
            if self._left <= reserve:
                self._end_turn()

    def _end_turn(self) -> None:
        """Pause the sockets in use. Those that missed this turn have their turns first."""
        for each in self._used:
            if each.turn != self._turn:
                self._pause(each)
        for each in self._used:
            if each.turn == self._turn:
                self._pause(each)
        self._used.clear()
        if self._over:
            for each in self._idle:
                self._pause(each)
            self._idle.clear()
        self._over = True

    def _pause(self, reader: BulkReader) -> None:
        reader.pause(True)
        reader.turn = NO_TURN
        self._paused.setdefault(reader.client, {})[reader] = None

    def end(self, reader: BulkReader) -> None:
        """Forget the socket of a connection that has ended."""
        reader.transport = None
        self._used.pop(reader, None)
        self._idle.pop(reader, None)
        paused = self._paused.get(reader.client)
        if paused is not None and reader in paused:
            del paused[reader]
            if not paused:
                del self._paused[reader.client]

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._next_turn(self._resume)

    def _resume(self) -> None:
        """Begin a turn.

        The event loop reads a socket until it is empty or paused, and may begin each turn with the same one.
        A socket that has had a whole turn is therefore read alone: it would have the turns of others, too.
        """
        self._armed = False
        if not self._over:
            for each in [each for each in self._used if each.turn != self._turn]:
                del self._used[each]
                each.turn = NO_TURN
                self._idle[each] = None
        self._over = False
        self._left = TURN_BYTES
        expected: native = 0
        for number in range(RESUMED):
            if not self._paused:
                break
            client, readers = next(iter(self._paused.items()))
            reader = next(iter(readers))
            expected += reader.size
            if number > 0 and expected > TURN_BYTES:
                break
            del self._paused[client], readers[reader]
            if readers:
                self._paused[client] = readers
            reader.turn = self._turn
            self._used[reader] = None
            reader.pause(False)
        self._turn += 1
        if self._paused:
            self._arm()


_reads: BulkReads | None = None
_loop: asyncio.AbstractEventLoop | None = None


def bulk_reads(loop: asyncio.AbstractEventLoop) -> BulkReads:
    """Return the object that all connections of an event loop share."""
    global _reads, _loop
    if _reads is None or _loop is not loop:
        _reads = BulkReads(loop.call_soon)
        _loop = loop
    return _reads
