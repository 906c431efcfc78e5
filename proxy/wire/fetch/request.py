"""FetchRequest v0-18, split into partitions so that some can be omitted.

    replica_id (v0-14), max_wait_ms, min_bytes, max_bytes (v3), isolation_level (v4), session_id and
    session_epoch (v7), topics, forgotten_topics_data (v7), rack_id (v11), tags (v12)

A partition's entry: partition, current_leader_epoch (v9), fetch_offset, last_fetched_epoch (v12),
log_start_offset (v5), partition_max_bytes, tags (v12: replica_directory_id, high_watermark). The bytes of an
entry are kept, so that unknown fields survive; only partition_max_bytes is ever changed in them.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.edit import NO_TAGS, count, i32, raw_string
from proxy.wire.errors import Malformed
from proxy.wire.long_names import MAX_TOPIC_NAME
from proxy.wire.reader import MAX_LENGTH, MAX_TAGS, Reader, i32_at

SESSIONS_FROM: Final = 7
"""The first version with sessions (KIP-227)."""
FLEXIBLE_FROM: Final = 12
"""The first version with compact strings and tagged fields (KIP-482)."""
TOPIC_IDS_FROM: Final = 13
"""The first version that names topics by id (KIP-516)."""
REPLICA_STATE_FROM: Final = 15
"""The first version whose replica_id is in the tagged field ReplicaState (KIP-903)."""
REPLICA_STATE_TAG: Final = 1
PARTITION_TAGS: Final = {0: (17, 16), 1: (18, 8)}
"""The tagged fields of a partition, replica_directory_id and high_watermark: by tag, the first version that
has the field, and its size.
"""

FULL_EPOCH: Final = 0
"""A request that asks for a new session; KIP-227."""
FINAL_EPOCH: Final = -1
"""A request outside any session, which ends the session that it names; KIP-227."""
NO_SESSION: Final = 0
"""The session_id outside any session."""
_ISOLATION_SIZE: Final = 1
_SESSION_ID_SIZE: Final = 4
_EPOCH_SIZE: Final = 4
MAX_EPOCH: Final = 2**31 - 1
"""The session_epoch after which 1 follows (FetchMetadata.nextEpoch)."""
NO_BOUND: Final = -1
"""In place of a max_bytes or partition_max_bytes that a quota sets: no quota bounds the bytes."""

PartitionKey = tuple[bytes, int]
"""A partition of a fetch: its topic's name in UTF-8, or its topic's id (v13), and its number."""


@final
class FetchEntry:
    """One partition in a Fetch request."""

    __slots__ = ("fetch_offset", "leader_epoch", "max_bytes", "partition", "raw", "topic")

    def __init__(
        self, topic: bytes, partition: int, leader_epoch: int, fetch_offset: int, max_bytes: int, raw: bytes
    ) -> None:
        self.topic: Final = topic
        """The topic's name in UTF-8; its id from v13 on."""
        self.partition: Final = partition
        self.leader_epoch: Final = leader_epoch
        """current_leader_epoch; -1 where the version has no such field."""
        self.fetch_offset: Final = fetch_offset
        self.max_bytes: Final = max_bytes
        """partition_max_bytes."""
        self.raw: Final = raw
        """The bytes of the whole entry."""


@final
class FetchRequest:
    """The fields of a FetchRequest after max_bytes. Offsets are those of the frame."""

    def __init__(self, version: int) -> None:
        self.version: Final = version
        self.session_at = -1
        """The offset of session_id and session_epoch; -1 if the version has none."""
        self.session_id = NO_SESSION
        self.session_epoch = FINAL_EPOCH
        self.entries: list[FetchEntry] = []
        self.forgotten: list[PartitionKey] = []
        self.topics_at = 0
        """The offset of the array of topics."""
        self.topics_end = 0
        """The offset behind the topics, and behind forgotten_topics_data if the version has it."""
        self.replica_id = -1
        """The follower's node id, -1 for a consumer. Only from v15 on: see replica_id()."""

    @property
    def full(self) -> bool:
        """Whether it names every partition that it is about."""
        return is_full(self.session_epoch)


def read_fetch_request(frame: bytes, start: int, version: int, at_most: int = MAX_LENGTH) -> FetchRequest:
    """Read a whole frame from `start` on, where max_bytes ends (min_bytes before v3).

    Raises Malformed, also if it names more than `at_most` partitions or topics.
    """
    reader = Reader([frame], start)
    flexible = version >= FLEXIBLE_FROM
    request = FetchRequest(version)
    if version >= 4:
        reader.take(1)  # isolation_level
    if version >= SESSIONS_FROM:
        request.session_at = reader.offset
        request.session_id = reader.i32()
        request.session_epoch = reader.i32()
    request.topics_at = reader.offset
    left = _bounded(reader.count(flexible), at_most)
    while left > 0:
        _read_topic(reader, request, version, flexible, at_most)
        left -= 1
    if version >= SESSIONS_FROM:
        _read_forgotten(reader, request, version, flexible, at_most)
    request.topics_end = reader.offset
    if version >= 11:
        reader.skip_string(flexible)  # rack_id
    if flexible:
        _read_tags(reader, request, version)
    return request


def read_session_epoch(pieces: list[bytes], start: native, version: native) -> native:
    """Return the session_epoch, before v7 FINAL_EPOCH. `start` is as for read_fetch_request()."""
    if version < SESSIONS_FROM:
        return FINAL_EPOCH
    at = start + _ISOLATION_SIZE + _SESSION_ID_SIZE
    head = pieces[0]
    if at + _EPOCH_SIZE <= len(head):  # nearly always: a single piece needs no Reader
        return i32_at(head, at)
    return Reader(pieces, at).i32()


def is_full(session_epoch: native) -> bool:
    """Whether a request of this epoch names every partition that it is about."""
    return session_epoch in (FULL_EPOCH, FINAL_EPOCH)


def replica_id(frame: bytes, min_bytes_at: int, request: FetchRequest) -> int:
    """Return the node id of the follower that fetches; -1 for a consumer."""
    if request.version >= REPLICA_STATE_FROM:
        return request.replica_id
    return Reader([frame], min_bytes_at - 8).i32()  # replica_id, max_wait_ms, min_bytes


def _bounded(number: int, at_most: int) -> int:
    if number > at_most:
        raise Malformed(f"a fetch names {number} partitions; at most {at_most} are read from this client")
    return number


def _topic(reader: Reader, version: int, flexible: bool) -> bytes:
    """Read a topic's id or name, which may be kept for as long as a session lasts."""
    if version >= TOPIC_IDS_FROM:
        return reader.uuid()
    topic = reader.raw_string(flexible)
    if len(topic) > MAX_TOPIC_NAME:
        raise Malformed(f"a fetch names a topic with {len(topic)} bytes; names have {MAX_TOPIC_NAME} at most")
    return topic


def _read_topic(reader: Reader, request: FetchRequest, version: int, flexible: bool, at_most: int) -> None:
    topic = _topic(reader, version, flexible)
    left = reader.count(flexible)
    _bounded(len(request.entries) + left, at_most)
    while left > 0:
        start = reader.pos
        partition = reader.i32()
        leader_epoch = reader.i32() if version >= 9 else -1
        fetch_offset = reader.i64()
        if version >= 12:
            reader.take(4)  # last_fetched_epoch
        if version >= 5:
            reader.take(8)  # log_start_offset
        max_bytes = reader.i32()
        if flexible and not reader.skip_no_tags():
            _skip_partition_tags(reader, version)
        raw = reader.data[start : reader.pos]
        request.entries.append(FetchEntry(topic, partition, leader_epoch, fetch_offset, max_bytes, raw))
        left -= 1
    if flexible:
        reader.skip_tags()


def _skip_partition_tags(reader: Reader, version: int) -> None:
    """Step over the tagged fields of a partition. Raises Malformed if one has a wrong size: a broker ignores
    the size of a field that it knows, so the proxy would not see what the broker reads next.
    """
    left = _bounded_tags(reader.uvarint())
    while left > 0:
        tag = reader.uvarint()
        size = reader.uvarint()
        since, right = PARTITION_TAGS.get(tag, (version, size))
        if version >= since and size != right:
            raise Malformed(f"tagged field {tag} of a partition has {size} bytes instead of {right}")
        reader.skip(size)
        left -= 1


def _bounded_tags(number: int) -> int:
    if number > MAX_TAGS:
        raise Malformed(f"{number} tagged fields in a fetch; at most {MAX_TAGS} are read")
    return number


def _read_forgotten(
    reader: Reader, request: FetchRequest, version: int, flexible: bool, at_most: int
) -> None:
    topics = _bounded(reader.count(flexible), at_most)
    while topics > 0:
        topic = _topic(reader, version, flexible)
        left = reader.count(flexible)
        _bounded(len(request.forgotten) + left, at_most)
        while left > 0:
            request.forgotten.append((topic, reader.i32()))
            left -= 1
        if flexible:
            reader.skip_tags()
        topics -= 1


def _read_tags(reader: Reader, request: FetchRequest, version: int) -> None:
    left = _bounded_tags(reader.uvarint())
    while left > 0:
        tag = reader.uvarint()
        size = reader.uvarint()
        start = reader.pos
        reader.take(size)
        if tag == REPLICA_STATE_TAG and version >= REPLICA_STATE_FROM:
            request.replica_id = Reader([reader.data[start : start + size]]).i32()
        left -= 1


def with_max_bytes(raw: bytes, version: int, max_bytes: int) -> bytes:
    """A partition's entry with another partition_max_bytes."""
    at = 4 + 8  # partition, fetch_offset
    if version >= 5:
        at += 8  # log_start_offset
    if version >= 9:
        at += 4  # current_leader_epoch
    if version >= 12:
        at += 4  # last_fetched_epoch
    return raw[:at] + i32(max_bytes) + raw[at + 4 :]


def write_topics(
    version: int, entries: dict[bytes, list[bytes]], forgotten: dict[bytes, list[bytes]]
) -> bytes:
    """The bytes from `topics_at` to `topics_end`.

    `entries` are partitions' entries by topic; `forgotten` partitions' numbers (int32), and not for versions
    without sessions.
    """
    flexible = version >= FLEXIBLE_FROM
    out: list[bytes] = []
    out.append(count(len(entries), flexible))
    write_each_topic(out, version, entries)
    if version >= SESSIONS_FROM:
        out.append(count(len(forgotten), flexible))
        write_each_topic(out, version, forgotten)
    return b"".join(out)


def write_each_topic(out: list[bytes], version: int, topics: dict[bytes, list[bytes]]) -> None:
    """Add topics with the bytes of their partitions to `out`, without the number of topics."""
    flexible = version >= FLEXIBLE_FROM
    for topic, elements in topics.items():
        out.append(topic_bytes(version, topic))
        out.append(count(len(elements), flexible))
        out.extend(elements)
        if flexible:
            out.append(NO_TAGS)


def topic_bytes(version: int, topic: bytes) -> bytes:
    """A topic's name or id, as a Fetch of this version has it."""
    return topic if version >= TOPIC_IDS_FROM else raw_string(topic, version >= FLEXIBLE_FROM)
