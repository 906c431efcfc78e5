"""The consumer protocol's messages in JoinGroup and SyncGroup: their topics must not collide.

A group's members give each other subscriptions and assignments. Kafka's coordinator reads them when a group
changes between the classic protocol and that of KIP-848, and keeps their topics in hash tables like those of
keyed arrays. With Kafka 4.3.1, a JoinGroup of 17 KB with 2,500 equal owned partitions, to a group of the new
protocol, occupies one of the coordinator's four threads for more than 30 s. All groups of a partition of
`__consumer_offsets` wait for it.

    Subscription    version, topics, user data, and from version 1 owned partitions by topic
    Assignment      version, partitions by topic

Neither is flexible.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.api_keys import JOIN_GROUP, SYNC_GROUP, api_name
from proxy.wire.errors import Malformed, Short
from proxy.wire.keyed.keyed_arrays import STEPS_FREE, check_hashes, java_hash
from proxy.wire.reader import Reader

CONSUMER: Final = b"consumer"
"""The protocol type of these groups."""
NEWEST: Final = {JOIN_GROUP: 9, SYNC_GROUP: 5}
_FLEXIBLE_FROM: Final = {JOIN_GROUP: 6, SYNC_GROUP: 4}
SMALLEST_BYTES: Final[native] = 100
"""A smaller message is not read: it has too few topics to occupy a coordinator."""
TOPICS_AT_MOST: Final[native] = 45_000
"""The most topics of all messages of a request. A coordinator stores a group in one message of at most 1 MiB
by default. The event loop serves nobody else while it reads them.
"""
MESSAGES_AT_MOST: Final[native] = 10_000
"""The most members of a group, or protocols of one."""
_INT32: Final = 4


def check_consumer_protocol(
    pieces: list[bytes], body_at: int, api_key: int, api_version: int, complete: bool = True
) -> int:
    """Raise Malformed if the topics that a member gives to others collide; return how many topics have been
    read. `pieces` is the request's frame, or, if it is not `complete`, the first part; `body_at` is the
    offset behind the client id.

    If more of a JoinGroup is to come, Malformed is raised. A coordinator does not store a SyncGroup that is
    larger than a message may be, and so never reads the rest of one.
    """
    if api_version > NEWEST.get(api_key, -1):
        return 0
    flexible = api_version >= _FLEXIBLE_FROM[api_key]
    reader = Reader(pieces, body_at)
    topics = _Topics(api_key)
    try:
        if flexible:
            reader.skip_tags()
        if not _skip_head(reader, api_key, api_version, flexible):
            return 0
        left = reader.count(flexible)
        if left > MESSAGES_AT_MOST:
            raise Malformed(f"{api_name(api_key)} with an array of {left} elements")
        while left > 0:
            reader.skip_string(flexible)  # the protocol's name, or the member's id
            size = reader.bytes_length(flexible)
            at = reader.take(size)
            if size >= SMALLEST_BYTES:
                topics.read(reader.data[at : at + size])
            if flexible:
                reader.skip_tags()
            left -= 1
    except Short as error:
        if not complete and api_key == JOIN_GROUP:
            raise Malformed("JoinGroup that is too large for its topics to be checked") from error
    return topics.number


def _skip_head(reader: Reader, api_key: int, version: native, flexible: bool) -> bool:
    """Step over the fields before the array. Return whether the group may be one of consumers."""
    reader.skip_string(flexible)  # group_id
    reader.take(_INT32)  # session_timeout_ms, or generation_id
    if api_key == JOIN_GROUP:
        if version >= 1:
            reader.take(_INT32)  # rebalance_timeout_ms
        reader.skip_string(flexible)  # member_id
        if version >= 5:
            reader.skip_string(flexible)  # group_instance_id
        return reader.raw_string(flexible) == CONSUMER
    reader.skip_string(flexible)  # member_id
    if version >= 3:
        reader.skip_string(flexible)  # group_instance_id
    if version < 5:
        return True
    protocol_type = reader.raw_string(flexible)
    reader.skip_string(flexible)  # protocol_name
    return protocol_type in (b"", CONSUMER)


@final
class _Topics:
    """The topics of all messages of a request."""

    def __init__(self, api_key: int) -> None:
        self.number: native = 0
        self._steps: native = 0
        """Those that a coordinator takes to put the topics of all messages into tables."""
        self._most_steps: native = 0
        """Those for the message that takes most."""
        self._api_key: Final = api_key

    def read(self, message: bytes) -> None:
        """Check a subscription or an assignment. Anything else is left to the members: a coordinator does not
        read it.
        """
        reader = Reader([message])
        hashes: list[int] = []
        count: native = 0
        try:
            version = reader.i16()
            if self._api_key == JOIN_GROUP:
                self._skip_subscribed(reader)
            if self._api_key != JOIN_GROUP or version >= 1:
                count = reader.count(False)
                self._read_partitions(reader, count, hashes)
        except Malformed:
            pass
        if self.number > TOPICS_AT_MOST:
            raise Malformed(
                f"{api_name(self._api_key)} with more than {TOPICS_AT_MOST} topics in its messages"
            )
        if hashes:
            steps: native = check_hashes(hashes, count, self._api_key)
            self._steps += steps
            self._most_steps = max(self._most_steps, steps)
            if self._steps - self._most_steps > STEPS_FREE:
                raise Malformed(f"{api_name(self._api_key)} whose topics are equal or collide")

    def _skip_subscribed(self, reader: Reader) -> None:
        """Step over the topics that a member subscribes to, and its user data."""
        left = reader.count(False)
        while left > 0 and self.number <= TOPICS_AT_MOST:
            reader.skip_string(False)
            self.number += 1
            left -= 1
        reader.skip(reader.bytes_length(False))

    def _read_partitions(self, reader: Reader, count: native, hashes: list[int]) -> None:
        left = count
        while left > 0:
            hashes.append(java_hash(reader.raw_string(False)))
            reader.skip(reader.count(False) * _INT32)
            self._count()
            left -= 1

    def _count(self) -> None:
        self.number += 1
        if self.number > TOPICS_AT_MOST:
            raise Malformed(
                f"{api_name(self._api_key)} with more than {TOPICS_AT_MOST} topics in its messages"
            )
