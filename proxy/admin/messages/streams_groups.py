"""StreamsGroupHeartbeat (88) and StreamsGroupDescribe (89), v0 (KIP-1071): the internal topics of a group.

Both are flexible. A heartbeat has the group's topology when a member joins.
"""

from dataclasses import dataclass
from typing import Final

from proxy.admin.messages.config_resources import check_number
from proxy.admin.messages.fields import frame, open_request, open_response
from proxy.admin.yielder import Yielder
from proxy.wire.api_keys import STREAMS_GROUP_DESCRIBE, STREAMS_GROUP_HEARTBEAT
from proxy.wire.apis.api import RequestHeader
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.edit import NO_TAGS, count, i16, i32, raw_string, string
from proxy.wire.reader import Reader

HEARTBEAT: Final = InterceptedApi(STREAMS_GROUP_HEARTBEAT, newest=0, flexible_from=0)
MAX_TOPICS: Final = 10_000
"""The topics of one topology: a controller creates no more partitions at once (KRaft)."""
MISSING_INTERNAL_TOPICS: Final = 3
"""The status of a group whose internal topics the broker creates."""
_LACKING: Final = (1, 2, MISSING_INTERNAL_TOPICS)
"""The statuses of a group that lacks topics, or whose topics do not have the right partitions."""
_UNAUTHORIZED: Final = "Unauthorized to CREATE on topics"
"""A part of the status' detail if the client may not create them. Names of topics have no spaces."""
_FAILED: Final = "; Creation failed: "
"""Errors of an earlier creation follow in the detail, which may quote what the client has sent."""


@dataclass(frozen=True, slots=True)
class Subtopology:
    """The topics of a part of a streams application."""

    sources: list[str]
    changelogs: list[str]
    """Internal topics with as many partitions as the source topic, or repartition topic, that has most."""
    repartitions: dict[str, int]
    """Internal topics that are sources as well, and their partitions; 0: as another subtopology needs."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A request."""

    group_id: str
    topology: list[Subtopology] | None


@dataclass(frozen=True, slots=True)
class HeartbeatStatus:
    """What a response says about the topics of its group."""

    complete: bool
    """Whether the group lacks nothing."""
    creates: bool
    """Whether the broker has begun to create internal topics."""


async def read_heartbeat(header: RequestHeader, payload: bytes, yielder: Yielder) -> Heartbeat:
    """Read a request from its header and body, up to its topology. Raises Malformed."""
    reader = open_request(header, payload, flexible=True)
    group_id = reader.string(True)
    reader.skip_string(True)  # member_id
    reader.take(8)  # member_epoch, endpoint_information_epoch
    reader.skip_string(True)  # instance_id
    reader.skip_string(True)  # rack_id
    reader.take(4)  # rebalance_timeout_ms
    if not _present(reader):
        return Heartbeat(group_id, None)
    reader.take(4)  # epoch
    topology: list[Subtopology] = []
    room = MAX_TOPICS
    for _ in range(reader.count(True)):
        reader.skip_string(True)  # subtopology_id
        sources = await _read_strings(reader, room, yielder)
        await _read_strings(reader, room, yielder)  # source_topic_regex
        changelogs = await _read_topics(reader, room, yielder)
        await _read_strings(reader, room, yielder)  # repartition_sink_topics
        repartitions = await _read_topics(reader, room, yielder)
        for _ in range(reader.count(True)):  # copartition_groups
            await yielder.step()
            for _ in range(3):
                reader.skip(2 * reader.count(True))
            reader.skip_tags()
        reader.skip_tags()
        room -= _add(topology, sources, changelogs, repartitions)
        await yielder.step()
    return Heartbeat(group_id, topology)


def read_heartbeat_status(payload: bytes) -> HeartbeatStatus:
    """Read a response from its header and body, up to its status. Raises Malformed."""
    reader = open_response(payload, flexible=True)
    reader.take(4)  # throttle_time_ms
    error_code = reader.i16()
    reader.skip_string(True)  # error_message
    reader.skip_string(True)  # member_id
    reader.take(16)  # member_epoch, heartbeat_interval_ms, acceptable_recovery_lag, task_offset_interval_ms
    complete = error_code == 0
    creates = False
    for _ in range(reader.count(True)):
        code = reader.u8()
        detail = reader.string(True)
        reader.skip_tags()
        authorized = _UNAUTHORIZED not in detail.partition(_FAILED)[0]
        creates = creates or (code == MISSING_INTERNAL_TOPICS and authorized)
        complete = complete and code not in _LACKING
    return HeartbeatStatus(complete, creates)


def describe_request(header: RequestHeader, group_id: str) -> bytes:
    """Return the frame of a request that describes one group, for the intercepted request of this header."""
    head = i16(STREAMS_GROUP_DESCRIBE) + i16(0) + i32(header.correlation_id)
    group = count(1, True) + string(group_id, True)
    return frame([head, raw_string(header.raw_client_id, False), NO_TAGS, group, b"\0", NO_TAGS])


async def read_described_topology(payload: bytes, yielder: Yielder) -> list[Subtopology]:
    """Return the topology of a described group; empty if there is no such group. Raises Malformed."""
    reader = open_response(payload, flexible=True)
    reader.take(4)  # throttle_time_ms
    topology: list[Subtopology] = []
    if reader.count(True) == 0:
        return topology
    reader.take(2)  # error_code
    reader.skip_string(True)  # error_message
    reader.skip_string(True)  # group_id
    reader.skip_string(True)  # group_state
    reader.take(8)  # group_epoch, assignment_epoch
    if not _present(reader):
        return topology
    reader.take(4)  # epoch
    for _ in range(reader.count(True)):
        reader.skip_string(True)  # subtopology_id
        sources = await _read_strings(reader, MAX_TOPICS, yielder)
        await _read_strings(reader, MAX_TOPICS, yielder)  # repartition_sink_topics
        changelogs = await _read_topics(reader, MAX_TOPICS, yielder)
        repartitions = await _read_topics(reader, MAX_TOPICS, yielder)
        reader.skip_tags()
        _add(topology, sources, changelogs, repartitions)
        await yielder.step()
    return topology


def _add(
    topology: list[Subtopology], sources: list[str], changelogs: dict[str, int], repartitions: dict[str, int]
) -> int:
    """Add a subtopology, and return how many topics it has."""
    topology.append(Subtopology(sources, [*changelogs], repartitions))
    return len(sources) + len(changelogs) + len(repartitions)


def _present(reader: Reader) -> bool:
    """Read whether a nullable structure follows."""
    return reader.u8() == 1


async def _read_strings(reader: Reader, at_most: int, yielder: Yielder) -> list[str]:
    number = reader.count(True)
    check_number(number, at_most, "topics")
    strings: list[str] = []
    for _ in range(number):
        strings.append(reader.string(True))
        await yielder.step()
    return strings


async def _read_topics(reader: Reader, at_most: int, yielder: Yielder) -> dict[str, int]:
    """Read an array of TopicInfo; return the partitions by name."""
    number = reader.count(True)
    check_number(number, at_most, "topics")
    topics: dict[str, int] = {}
    for _ in range(number):
        name = reader.string(True)
        topics[name] = reader.i32()
        reader.take(2)  # replication_factor
        for _ in range(reader.count(True)):  # topic_configs
            reader.skip_string(True)
            reader.skip_string(True)
            reader.skip_tags()
            await yielder.step()
        reader.skip_tags()
        await yielder.step()
    return topics
