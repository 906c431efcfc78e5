"""The member of a group in a request: who joins, or is in the group.

All requests of members begin alike; the rest is not read:

    JoinGroup                         group_id, session_timeout_ms, rebalance_timeout_ms (v1), member_id,
                                      group_instance_id (v5)
    SyncGroup, Heartbeat              group_id, generation_id, member_id
    OffsetCommit                      group_id, generation_id (v1), member_id (v1)
    ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat
                                      group_id, member_id

A coordinator gives a member an id if it has none. From v4, it gives a JoinGroup without an id and without a
group_instance_id only the id: the client joins with another request, which has it.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    SYNC_GROUP,
)
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader

FLEXIBLE_FROM: Final = {
    OFFSET_COMMIT: 8,
    JOIN_GROUP: 6,
    HEARTBEAT: 4,
    SYNC_GROUP: 4,
    CONSUMER_GROUP_HEARTBEAT: 0,
    SHARE_GROUP_HEARTBEAT: 0,
    STREAMS_GROUP_HEARTBEAT: 0,
}
"""The requests of members, with their first flexible versions."""
MEMBER_REQUESTS: Final = frozenset(FLEXIBLE_FROM)
REMINDERS: Final = frozenset([HEARTBEAT, OFFSET_COMMIT])
"""Those of which a coordinator keeps nothing that belongs to the member."""
SESSION_SECONDS: Final = 60.0
"""The longest session of a member that sends ConsumerGroupHeartbeat, ShareGroupHeartbeat or
StreamsGroupHeartbeat, unless a broker allows longer ones (group.consumer.max.session.timeout.ms).
"""


@final
class GroupMember:
    """A member, as a request names it."""

    __slots__ = ("group", "head_size", "instance_id", "joins", "member_id", "seconds")

    def __init__(
        self,
        group: bytes,
        member_id: bytes,
        instance_id: bytes,
        joins: bool,
        seconds: float,
        head_size: native,
    ) -> None:
        self.group: Final = group
        self.member_id: Final = member_id
        """Empty if it has none yet."""
        self.instance_id: Final = instance_id
        """The id of a static member that sends JoinGroup; empty for others."""
        self.joins: Final = joins
        """False for a JoinGroup that only gets a member id."""
        self.seconds: Final = seconds
        """For how long a coordinator keeps a member that sends nothing, also if its group rebalances."""
        self.head_size: Final[native] = head_size
        """The bytes of the frame up to the last field that has been read."""


def read_group_member(
    pieces: list[bytes], body_at: int, api_key: int, api_version: int
) -> GroupMember | None:
    """Read the member of a request of FLEXIBLE_FROM; None if it ends too early, which a broker rejects.
    `pieces` is its frame, or the first part; `body_at` is the offset behind the client id.
    """
    flexible = api_version >= FLEXIBLE_FROM[api_key]
    reader = Reader(pieces, body_at)
    try:
        if flexible:
            reader.skip_tags()
        group = reader.raw_string(flexible)
        if api_key == JOIN_GROUP:
            return _read_join(reader, group, api_version, flexible)
        if api_key == OFFSET_COMMIT and api_version < 1:
            return None
        if api_key in (SYNC_GROUP, HEARTBEAT, OFFSET_COMMIT):
            reader.take(4)  # generation_id
        member_id = reader.raw_string(flexible)
    except Malformed:
        return None
    return GroupMember(group, member_id, b"", True, SESSION_SECONDS, reader.offset)


def _read_join(reader: Reader, group: bytes, version: native, flexible: bool) -> GroupMember:
    session_ms = reader.i32()
    rebalance_ms = reader.i32() if version >= 1 else session_ms
    member_id = reader.raw_string(flexible)
    instance_id = reader.raw_string(flexible) if version >= 5 else b""
    joins = version < 4 or member_id != b"" or instance_id != b""
    seconds = float(max(session_ms, 0) + max(rebalance_ms, 0)) / 1000.0
    return GroupMember(group, member_id, instance_id, joins, seconds, reader.offset)
