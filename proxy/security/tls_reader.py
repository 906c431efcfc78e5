"""TlsReader: gives OpenSSL the TLS records of a client a few at a time.

OpenSSL reads all records that have arrived until one has data. A KeyUpdate of TLS 1.3 has none. It takes 27
bytes and 20 microseconds, and a client may send any number of them, or records of one byte. A read brings
256 KiB, and all other connections would wait for 0.2 s.

The reader therefore parses the headers of records, which are not encrypted. It passes large records to
OpenSSL one after the other, and small ones in runs, because each call costs a tenth of a small record. It
stops when all connections together have read enough small ones in this turn of the event loop. The rest stays
in the event loop's buffer for 1 ms. If a client sends many records without data, its connection ends.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final, final

from mypy_extensions import i64 as native

from proxy.relay.budgets.read_turns import FREE_FRAMES, PAUSE_SECONDS, ReadTurns

HEADER_BYTES: Final[native] = 5
"""Type, version, and the length of the rest."""
RECORD_AT_MOST: Final[native] = 16 * 1024 + 2048 + 5
"""The largest record (TLS 1.2); OpenSSL rejects a larger one."""
SMALL_BYTES: Final[native] = 2048
"""Records of at least this size do not count: BulkReads limits the bytes of a turn."""
HANDSHAKE_RECORDS: Final = 128
"""The most records of a handshake. A client with a long chain of certificates, in fragments of 512 bytes,
sends some fifty.
"""
EMPTY_COST: Final[native] = 64
EMPTY_AT_MOST: Final[native] = 32 * EMPTY_COST
"""A client may send 32 records without data, and then one for each 64 records with data."""
NOT_READ: Final = -1.0


@final
class TlsReader:
    """The reader of one connection."""

    def __init__(
        self,
        incoming: ssl.MemoryBIO,
        records: ssl.MemoryBIO,
        read: Callable[[int], bytes],
        pending: Callable[[], int],
        received: bytes = b"",
    ) -> None:
        """`incoming` is the event loop's buffer of received bytes; `records` is OpenSSL's. `read` and
        `pending` are OpenSSL's functions. `received`: what the client has sent before.
        """
        self._incoming: Final = incoming
        self._take_incoming: Final[Callable[[], bytes]] = incoming.read
        self._put_back: Final[Callable[[Any], int]] = incoming.write
        self._pass_on: Final[Callable[[Any], int]] = records.write
        self._read: Final = read
        self._pending: Final = pending
        self._cut = received
        """What OpenSSL has not got yet: usually the beginning of a record."""
        self._end_kept = False
        """Whether the first byte that waits is that of keep_end()."""
        self._now = NOT_READ
        """The time of a read, after it has asked for a turn."""
        self._waits = False
        """Whether the other connections have their turn first."""
        self._more = False
        """Whether OpenSSL has more data of the last record."""
        self._ended = False
        """Whether the client has ended the connection, which the event loop has not seen yet."""
        self._empty: native = 0
        self._handshake_records = 0
        self._rejected = False
        """Whether the client has sent too many records, so that no more are read."""
        self._turns: ReadTurns | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._resume: Callable[[], None] | None = None
        self._reject: Callable[[str], None] | None = None
        self._closing: Callable[[], bool] | None = None

    def share_turns(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        resume: Callable[[], None],
        reject: Callable[[str], None],
        closing: Callable[[], bool],
    ) -> None:
        """From now on, share the turns of the event loop with other connections. `resume` has the event loop
        read the connection again, if it is to be read; `reject` ends the connection, with the reason;
        `closing` returns whether the proxy has ended it.
        """
        self._turns = _record_turns(loop)
        self._loop = loop
        self._resume = resume
        self._reject = reject
        self._closing = closing

    # The handshake

    def has_record(self) -> bool:
        """Whether the next record of a handshake has arrived."""
        self._cut = self._received()
        return record_size(self._cut, 0) > 0

    def next_of_handshake(self) -> None:
        """Pass the next record of a handshake to OpenSSL; only if has_record(). Raises SSLError if there
        are too many.
        """
        self._handshake_records += 1
        if self._handshake_records > HANDSHAKE_RECORDS:
            raise ssl.SSLError(1, f"more than {HANDSHAKE_RECORDS} records in a handshake")
        size = record_size(self._cut, 0)
        self._pass_on(self._cut[:size])
        self._cut = self._cut[size:]

    def end_handshake(self) -> None:
        """Leave what follows the handshake to read()."""
        if self._cut:
            self._put_back(self._received())

    # Data

    def read(self, size: int = 1024, buffer: Any = None) -> Any:
        """Return the data of the next records, at most `size` bytes; empty at the end. With `buffer`, write
        them into it and return their number. Raises SSLWantReadError if there are none now, and other errors
        of OpenSSL.
        """
        if buffer is None:
            return self._read_data(size)
        data = self._read_data(size)
        memoryview(buffer)[: len(data)] = data
        return len(data)

    def keep_end(self) -> None:
        """Have the event loop leave the end of the connection in the socket, because the connection is not
        read for now. With keep_unread_data(), it does so while its buffer has a byte.
        """
        if self._incoming.pending == 0:
            self._end_kept = True
            self._put_back(b"\0")

    def _read_data(self, size: native) -> bytes:
        if self._waits or self._rejected:
            if self._drops:
                self._take_incoming()
            raise ssl.SSLWantReadError
        if self._more:
            return self._read_more(size)
        data = self._received()
        length: native = len(data)
        if length == 0 or self._ended:
            return b"" if self._ended else self._read(size)
        if length > size or length != record_size(data, 0):
            return self._read_several(data, size)
        chunk = self._read_record(data, length)  # nearly always: one whole record
        if chunk is None:
            raise ssl.SSLWantReadError
        return chunk

    def _read_record(self, record: Any, size: int) -> bytes | None:
        """Pass a record to OpenSSL, and return its data, at most `size` bytes; None if it has none. Empty
        data is the end of the connection.
        """
        self._pass_on(record)
        try:
            chunk = self._read(size)
        except ssl.SSLWantReadError:
            self._count(0, 1)
            return None
        if self._empty > 0:
            self._count(1, 0)
        return chunk

    def _received(self) -> bytes:
        """Return all bytes that wait."""
        data = self._take_incoming()
        if self._end_kept:
            self._end_kept = False
            data = data[1:]
        if self._cut:
            data = self._cut + data
            self._cut = b""
        return data

    def _read_more(self, size: int) -> bytes:
        chunk = self._read(size)
        self._more = self._pending() > 0
        return chunk

    def _read_several(self, data: bytes, size: native) -> bytes:
        """Read records as long as it is the connection's turn."""
        view: memoryview | None = None
        chunks: list[bytes] = []
        at: native = 0
        room = size
        small: native = 0
        self._now = NOT_READ
        while room > 0:
            count, length, largest = self._next_in_turn(data, at, room, small)
            if count == 0:
                break
            if largest < SMALL_BYTES:
                small += count
            records: Any = data
            if length < len(data):
                if view is None:
                    view = memoryview(data)
                records = view[at : at + length]
            most = largest if largest < room else room
            room -= self._read_run(records, count, most, chunks)
            at += length
            if most < largest and self._pending() > 0:
                self._more = True
                break
            if self._waits or self._rejected or self._ended:
                break
        self._leave(data, at)
        if self._ended and chunks:
            self._end_later()
        if not chunks and not self._ended:
            raise ssl.SSLWantReadError
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _next_in_turn(
        self, data: bytes, at: native, room: native, small: native
    ) -> tuple[native, native, native]:
        """Return _next_run(), of which the connection has read `small` records in this turn; zeros also if it
        may read no more.
        """
        # If none of the records has data, the last one is the first that is too many.
        empty = self._empty
        run = _next_run(data, at, room, (EMPTY_AT_MOST - empty) // EMPTY_COST + 1)
        count, _, largest = run
        if count == 0:
            self._cut = data[at:]
        elif largest < SMALL_BYTES:
            granted = self._granted(count, small)
            if granted < count:
                return _next_run(data, at, room, granted)
        return run

    def _read_run(self, records: Any, count: native, most: native, chunks: list[bytes]) -> native:
        """Pass `count` records to OpenSSL, and append the data of each, at most `most` bytes. Return the size
        of all data.
        """
        self._pass_on(records)
        read: native = 0
        found: native = 0
        try:
            while found < count:
                chunk = self._read(most)
                if not chunk:
                    self._ended = True
                    return read
                chunks.append(chunk)
                read += len(chunk)
                found += 1
        except ssl.SSLWantReadError:
            pass  # it has read all: it goes on to the next record behind one without data
        self._count(found, count - found)
        return read

    def _end_later(self) -> None:
        """Have the event loop read the end apart: the connection may pause because of what came before."""
        # The event loop calls again only if there is something in its buffer.
        self._put_back(b"\0")
        if self._loop is not None:
            self._waits = True
            self._loop.call_soon(self._read_on)

    def _leave(self, data: bytes, at: native) -> None:
        """Leave the bytes from `at` on for a later read."""
        if at < len(data) and not self._cut and not self._drops:
            self._put_back(data[at:])

    @property
    def _drops(self) -> bool:
        """Whether nobody reads what still arrives: the event loop would wait for it before it goes on."""
        return self._rejected or (self._closing is not None and self._closing())

    def _granted(self, count: native, before: native) -> native:
        """How many of `count` small records to read in this turn, after `before` others; if not all, read on
        later.
        """
        turns = self._turns
        loop = self._loop
        if before + count <= FREE_FRAMES or turns is None or loop is None:
            return count
        if self._now == NOT_READ:
            self._now = loop.time()
        granted: native = FREE_FRAMES - before if before < FREE_FRAMES else 0
        while granted < count:
            if not turns.take(1, self._now):
                self._waits = True
                loop.call_later(PAUSE_SECONDS, self._read_on)
                break
            granted += 1
        return granted

    def _read_on(self) -> None:
        self._waits = False
        if self._resume is not None:
            self._resume()

    def _count(self, found: native, empty: native) -> None:
        """Count records with data, and without. If there are too many of the latter, end the connection."""
        count = self._empty + EMPTY_COST * empty
        self._empty = count - found if count > found else 0
        if count <= EMPTY_AT_MOST:
            return
        what = "it sends many TLS records without data, such as KeyUpdate"
        self._rejected = True
        if self._loop is None or self._reject is None:
            raise ssl.SSLError(1, what)
        self._loop.call_soon(self._reject, what)


def record_size(data: bytes, at: native) -> native:
    """The size of the record that begins at `at`; 0 if it is not whole. If the header states more than a
    record may have, all bytes count as the record, because OpenSSL rejects it.
    """
    left = len(data) - at
    if left < HEADER_BYTES:
        return 0
    high: native = data[at + 3]
    low: native = data[at + 4]
    size = HEADER_BYTES + (high << 8) + low
    if size > RECORD_AT_MOST:
        return left
    return size if size <= left else 0


def _next_run(data: bytes, at: native, room: native, most: native) -> tuple[native, native, native]:
    """Return how many records from `at` on to pass to OpenSSL at once, their size, and that of the largest:
    up to `most` small ones, whose data fits into `room`, or one record. Zeros if none is whole.

    Together they have at most RECORD_AT_MOST bytes, because OpenSSL's buffer keeps its size.
    """
    count: native = 0
    length: native = 0
    largest: native = 0
    fits = room if room < RECORD_AT_MOST else RECORD_AT_MOST
    while count < most:
        record = record_size(data, at + length)
        if record == 0 or (count > 0 and (record >= SMALL_BYTES or length + record > fits)):
            break
        count += 1
        length += record
        if record > largest:
            largest = record
        if record >= SMALL_BYTES:
            break
    return count, length, largest


_turns: ReadTurns | None = None
_turns_of: asyncio.AbstractEventLoop | None = None


def _record_turns(loop: asyncio.AbstractEventLoop) -> ReadTurns:
    """Return the turns that all connections of an event loop share."""
    global _turns, _turns_of
    if _turns is None or _turns_of is not loop:
        _turns = ReadTurns(loop.call_soon)
        _turns_of = loop
    return _turns
