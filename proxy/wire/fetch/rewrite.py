"""FetchRewrite: the changes of a FetchResponse whose request the proxy has changed.

The relay uses it for requests from which it omits partitions: see proxy.relay.fetch.session.
"""

from typing import Final, final

from proxy.wire.edit import NO_TAGS, Edit, count, i16, i32, i64
from proxy.wire.fetch.known_watermarks import KnownWatermarks, Offsets
from proxy.wire.fetch.request import FLEXIBLE_FROM, NO_SESSION, SESSIONS_FROM, write_each_topic
from proxy.wire.reader import Reader

UNKNOWN: Final = -1
"""In place of an offset that no broker has reported."""


@final
class Watermarks:
    """The last offsets that a broker has reported for a partition; UNKNOWN before the first report."""

    __slots__ = (
        "batch_bytes",
        "high_watermark",
        "known",
        "last_bytes",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "outdated",
        "partition",
        "topic",
        "user",
    )

    def __init__(self) -> None:
        self.high_watermark = UNKNOWN
        self.last_stable_offset = UNKNOWN
        """From v4 on."""
        self.log_start_offset = UNKNOWN
        """From v5 on."""
        self.leader_epoch = UNKNOWN
        """The current_leader_epoch in the request for the partition."""
        self.outdated = False
        """Whether the broker reported the offsets under an earlier leader epoch. A response must not repeat
        them. The high watermark still shows which replicas are behind: a broker that stays leader never
        lowers it.
        """
        self.known: KnownWatermarks | None = None
        """The watermarks that all connections of `user` share, under `topic` and `partition`; None for
        followers.
        """
        self.user = ""
        self.topic = ""
        self.partition = -1
        self.last_bytes = -1
        """The bytes of records in the last response; -1 before the first."""
        self.batch_bytes = 0
        """The size of the partial batch at the end of the last response; 0 if there was none, or if its size
        is not known.
        """

    def tell(self, high_watermark: int, last_stable_offset: int, log_start_offset: int) -> None:
        """Store the offsets that the broker reports."""
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.outdated = False
        if self.known is not None:
            offsets = (high_watermark, last_stable_offset, log_start_offset)
            self.known.tell(self.user, self.topic, self.partition, offsets)

    @property
    def offsets(self) -> Offsets | None:
        """Return the offsets that the broker has reported on any connection of the user; None if there are
        none.
        """
        if self.high_watermark != UNKNOWN and not self.outdated:
            return (self.high_watermark, self.last_stable_offset, self.log_start_offset)
        return None if self.known is None else self.known.find(self.user, self.topic, self.partition)


class FetchRewrite:
    """The changes of one response. It is created with the request, and filled while the response is read."""

    reads_partitions = True
    """Whether the response is read beyond its session_id."""

    def __init__(self, version: int) -> None:
        self.version: Final = version
        self.session_mask = 0
        """The exclusive or of the client's session id and the broker's."""
        self.watched: dict[bytes, dict[int, Watermarks]] = {}
        """The watermarks to fill, by topic (name or id, as in the request) and partition."""
        self.added_topics = 0
        self.added = b""
        """Topics to put before the broker's own: partitions that the client expects to see."""
        self.error_code = 0
        self.session_id = NO_SESSION
        """The broker's session id; NO_SESSION if there is none."""

    def opened(self) -> None:
        """Note that the response has been read up to its partitions. Called once."""

    def withheld(self) -> None:
        """Note that the client gets an empty response without a session instead."""

    def client_session(self, session_id: int) -> int:
        """The client's id of the broker's session."""
        return session_id if session_id == NO_SESSION else session_id ^ self.session_mask

    def read_head(self, reader: Reader, edits: list[Edit]) -> int:
        """Read from the error_code (v7) on, and return how many topics follow. May be called again."""
        if self.version >= SESSIONS_FROM:
            self.error_code = reader.i16()
            at = reader.offset
            self.session_id = reader.i32()
            if self.session_mask and self.session_id != NO_SESSION:
                edits.append(Edit(at, at + 4, i32(self.session_id ^ self.session_mask)))
        flexible = self.version >= FLEXIBLE_FROM
        at = reader.offset
        topics = reader.count(flexible)
        # A response to a full fetch without topics has an error, or is throttled. Clients accept it, but not
        # one that has only some of their partitions.
        if self.added_topics and topics > 0 and self.error_code == 0:
            edits.append(Edit(at, reader.offset, count(topics + self.added_topics, flexible) + self.added))
        return topics

    def marks(self, topic: bytes, partition: int) -> Watermarks | None:
        """Return the watermarks to fill for a partition; None if they are not needed."""
        partitions = self.watched.get(topic)
        return None if partitions is None else partitions.get(partition)


@final
class SessionRead(FetchRewrite):
    """A response of which only the session_id is needed, and which does not change."""

    reads_partitions = False


def empty_partition(version: int, partition: int, offsets: Offsets) -> bytes:
    """Return a partition of a FetchResponse without records, with offsets that the broker has reported."""
    high_watermark, last_stable_offset, log_start_offset = offsets
    out = i32(partition) + i16(0) + i64(high_watermark)
    if version >= 4:
        out += i64(last_stable_offset)
    if version >= 5:
        out += i64(log_start_offset)
    flexible = version >= FLEXIBLE_FROM
    if version >= 4:
        out += count(-1, flexible)  # aborted_transactions: null, as brokers have it for most consumers
    if version >= 11:
        out += i32(-1)  # preferred_read_replica
    # Empty records and not null, because not every client accepts null.
    return out + (b"\1" + NO_TAGS if flexible else i32(0))


def write_partitions(version: int, partitions: dict[bytes, list[bytes]]) -> bytes:
    """Topics of a FetchResponse, without the number in front of them."""
    out: list[bytes] = []
    write_each_topic(out, version, partitions)
    return b"".join(out)


def read_response_session(pieces: list[bytes], throttle_at: int, version: int) -> int:
    """The session_id of a response whose throttle_time_ms is at `throttle_at`; -1 if it has an error."""
    if version < SESSIONS_FROM:
        return NO_SESSION
    reader = Reader(pieces, throttle_at + 4)
    error_code = reader.i16()
    return reader.i32() if error_code == 0 else -1


def fetch_response(
    version: int,
    correlation_id: int,
    *,
    error_code: int = 0,
    session_id: int = NO_SESSION,
    throttle_time_ms: int = 0,
    topics: int = 0,
    written: bytes = b"",
) -> bytes:
    """A whole FetchResponse, as a frame; `written` are the topics."""
    flexible = version >= FLEXIBLE_FROM
    body = i32(correlation_id)
    if flexible:
        body += NO_TAGS
    if version >= 1:
        body += i32(throttle_time_ms)
    if version >= SESSIONS_FROM:
        body += i16(error_code) + i32(session_id)
    body += count(topics, flexible) + written
    if flexible:
        body += NO_TAGS
    return i32(len(body)) + body
