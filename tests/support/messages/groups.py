"""Requests of members of groups."""

from datetime import timedelta
from typing import Any

import kio.schema.consumer_group_heartbeat.v1.request as consumer_group_heartbeat
import kio.schema.heartbeat.v4.request as heartbeat_v4
import kio.schema.join_group.v9.request as join_group
import kio.schema.sync_group.v5.request as sync_group
from kio.schema.types import GroupId
from kio.static.primitive import i32, i32Timedelta


def _time(seconds: float) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(seconds=seconds))


def join(
    group: str,
    member_id: str,
    size: int,
    *,
    session_seconds: float = 30.0,
    rebalance_seconds: float = 60.0,
    instance_id: str | None = None,
) -> Any:
    """JoinGroup of a member of another protocol type than `consumer`, with `size` bytes of metadata."""
    protocol = join_group.JoinGroupRequestProtocol(name="p", metadata=bytes(size))
    return join_group.JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout=_time(session_seconds),
        rebalance_timeout=_time(rebalance_seconds),
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="other",
        protocols=(protocol,),
        reason=None,
    )


def sync(group: str, member_id: str, size: int, generation: int = 1) -> Any:
    """SyncGroup of a leader that assigns itself `size` bytes."""
    return sync_group.SyncGroupRequest(
        group_id=GroupId(group),
        generation_id=i32(generation),
        member_id=member_id,
        group_instance_id=None,
        protocol_type="other",
        protocol_name="p",
        assignments=(sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=bytes(size)),),
    )


def heartbeat(group: str, member_id: str, generation: int = 1) -> Any:
    return heartbeat_v4.HeartbeatRequest(
        group_id=GroupId(group), generation_id=i32(generation), member_id=member_id, group_instance_id=None
    )


def consumer_heartbeat(group: str, member_id: str, topics: int) -> Any:
    """ConsumerGroupHeartbeat of a member that joins, with a subscription to this many topics."""
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=GroupId(group),
        member_id=member_id,
        member_epoch=i32(0),
        instance_id=None,
        rack_id=None,
        rebalance_timeout=_time(60),
        subscribed_topic_names=tuple(f"a-topic-with-a-name-of-40-characters-{n:05}" for n in range(topics)),
        subscribed_topic_regex=None,
        server_assignor=None,
        topic_partitions=(),
    )
