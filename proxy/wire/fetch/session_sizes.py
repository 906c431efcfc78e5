"""SessionSizes: for how many partitions a broker works on each fetch of one connection.

A full request names its partitions. A request of a session (KIP-227) names only those that change, but the
broker looks at all partitions of the session each time. So the sizes of sessions are kept, by the client's
session id. What a request removes from its session still counts: the broker may reject the request.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.fetch.request import (
    FINAL_EPOCH,
    FLEXIBLE_FROM,
    FULL_EPOCH,
    NO_SESSION,
    SESSIONS_FROM,
    TOPIC_IDS_FROM,
)
from proxy.wire.reader import Reader

MAX_SESSIONS: Final = 8
"""Sessions of one connection that are kept. A client has one."""
MAX_PARTITIONS: Final = 10_000
"""Partitions of all sessions of one connection that are kept: they take 850 KB."""
UNCOUNTED: Final = -1
"""The partitions of a session that has more than are kept."""
NOT_KNOWN: Final = -2
"""The partitions of a session that was not opened on this connection, or is not kept any more."""
_HASH_MASK: Final[native] = 2**61 - 1
_NUMBER_MASK: Final[native] = 2**31 - 1
_SPREAD: Final[native] = 0x5851F42D
"""An odd number of 31 bits: its products with the numbers of partitions differ, and have 62 bits."""


@final
class SessionPartitions:
    """The partitions that the requests of a session have named."""

    __slots__ = ("_keys", "counted")

    def __init__(self) -> None:
        self._keys: Final[set[int]] = set()
        """A hash of each partition: names of topics may be long."""
        self.counted = True
        """False if there are more than MAX_PARTITIONS; then none is kept."""

    @property
    def number(self) -> native:
        return len(self._keys)

    def read(self, reader: Reader, version: native) -> None:
        """Add the partitions of a request; `reader` is behind its session_epoch. Stop if there are too many.

        Raises Malformed or Short if the topics do not parse.
        """
        flexible = version >= FLEXIBLE_FROM
        size = _partition_bytes(version) - 1 if flexible else _partition_bytes(version)
        topics = reader.count(flexible)
        while topics > 0 and self.counted:
            topic = reader.uuid() if version >= TOPIC_IDS_FROM else reader.raw_string(flexible)
            self._read_topic(reader, hash(topic), size, flexible)
            topics -= 1

    def _read_topic(self, reader: Reader, topic_hash: int, size: native, flexible: bool) -> None:
        keys = self._keys
        masked: native = topic_hash & _HASH_MASK
        left = reader.count(flexible)
        while left > 0:
            number = reader.i32() & _NUMBER_MASK
            reader.take(size - 4)
            if flexible and not reader.skip_no_tags():
                reader.skip_tags()
            keys.add(masked ^ (number * _SPREAD))
            left -= 1
            if len(keys) > MAX_PARTITIONS:
                self.drop()
                return
        if flexible:
            reader.skip_tags()

    def drop(self) -> None:
        """Keep no partition of the session."""
        self._keys.clear()
        self.counted = False


@final
class NewSession:
    """A request that opens a session."""

    __slots__ = ("_partitions", "_sizes")

    def __init__(self, sizes: "SessionSizes", partitions: SessionPartitions) -> None:
        self._sizes: Final = sizes
        self._partitions: Final = partitions

    def opened(self, session_id: int) -> None:
        """Note the client's id of the session; NO_SESSION if the broker has opened none."""
        if session_id != NO_SESSION:
            self._sizes.add(session_id, self._partitions)


@final
class SessionSizes:
    """The sessions of one connection."""

    __slots__ = ("_sessions", "opening")

    def __init__(self) -> None:
        self._sessions: Final[dict[int, SessionPartitions]] = {}
        """By the client's session id, the last opened one last."""
        self.opening: NewSession | None = None
        """If the request that was read last opens a session: whom to tell of its id."""

    def read(self, reader: Reader, version: native, size: native, complete: bool) -> native:
        """Return an upper bound of the partitions of a request of `size` bytes, UNCOUNTED or NOT_KNOWN.
        `reader` is behind max_bytes (min_bytes before v3), and `complete` says whether it has the whole
        request.

        Raises Malformed or Short if the request does not parse.
        """
        self.opening = None
        named = size // _partition_bytes(version)
        if version < SESSIONS_FROM:
            return named
        reader.take(1)  # isolation_level
        session_id = reader.i32()
        epoch = reader.i32()
        if epoch != FULL_EPOCH and epoch != FINAL_EPOCH:
            return self._continue(session_id, reader, version, complete)
        if session_id != NO_SESSION:
            self._sessions.pop(session_id, None)
        if epoch == FULL_EPOCH:
            partitions = SessionPartitions()
            if complete:
                partitions.read(reader, version)
            else:
                partitions.drop()
            self.opening = NewSession(self, partitions)
        return named

    def _continue(self, session_id: int, reader: Reader, version: native, complete: bool) -> native:
        """Read a request of a session."""
        partitions = self._sessions.get(session_id)
        if partitions is None:
            # A large request cannot be answered before its end has arrived.
            return NOT_KNOWN if complete else UNCOUNTED
        if not partitions.counted:
            return UNCOUNTED
        if complete:
            partitions.read(reader, version)
            if partitions.counted:
                return partitions.number
        # It may have removed as many partitions as it has added, so the client opens a new one.
        del self._sessions[session_id]
        return NOT_KNOWN if complete else UNCOUNTED

    def add(self, session_id: int, partitions: SessionPartitions) -> None:
        """Add a session that the broker has opened, in place of the oldest ones if there are too many."""
        sessions = self._sessions
        sessions.pop(session_id, None)
        total = partitions.number
        for each in sessions.values():
            total += each.number
        while sessions and (len(sessions) >= MAX_SESSIONS or total > MAX_PARTITIONS):
            oldest = next(iter(sessions))
            total -= sessions.pop(oldest).number
        sessions[session_id] = partitions


def _partition_bytes(version: native) -> native:
    """The least number of bytes of a partition: partition, current_leader_epoch (v9), fetch_offset,
    last_fetched_epoch (v12), log_start_offset (v5), partition_max_bytes, tags (v12).
    """
    if version >= FLEXIBLE_FROM:
        return 33
    if version >= 9:
        return 28
    return 24 if version >= 5 else 16
