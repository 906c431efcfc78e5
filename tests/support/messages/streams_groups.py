"""StreamsGroupHeartbeat and StreamsGroupDescribe (KIP-1071) as kio's messages."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import STREAMS_GROUP_DESCRIBE, STREAMS_GROUP_HEARTBEAT
from tests.support.messages.kio_messages import request_type, response_type
from tests.support.messages.requests import build, part

MINUTE: Final = timedelta(minutes=1)
NO_TIME: Final = timedelta(0)


def _infos(schema: Any, topics: Mapping[str, int]) -> tuple[Any, ...]:
    config = part(schema, "KeyValue", key="retention.ms", value="-1")
    return tuple(
        part(
            schema,
            "TopicInfo",
            name=name,
            partitions=partitions,
            replication_factor=0,
            topic_configs=(config,),
        )
        for name, partitions in topics.items()
    )


def heartbeat(
    group: str,
    member: str,
    changelogs: Iterable[str] | None = None,
    *,
    sources: Sequence[str] = ("source",),
    repartitions: Mapping[str, int] | None = None,
    epoch: int = 0,
) -> Any:
    """A heartbeat with a topology of one subtopology, which has these internal topics; without a topology if
    `changelogs` is None. kio has version 0 only.
    """
    schema = request_type(STREAMS_GROUP_HEARTBEAT, 0)
    topology = None
    if changelogs is not None:
        copartitioned = part(
            schema,
            "CopartitionGroup",
            source_topics=tuple(range(len(sources))),
            source_topic_regex=(),
            repartition_source_topics=(),
        )
        subtopology = part(
            schema,
            "Subtopology",
            subtopology_id="0",
            source_topics=tuple(sources),
            source_topic_regex=(),
            state_changelog_topics=_infos(schema, dict.fromkeys(changelogs, 0)),
            repartition_sink_topics=tuple(repartitions or ()),
            repartition_source_topics=_infos(schema, repartitions or {}),
            copartition_groups=(copartitioned,),
        )
        topology = part(schema, "Topology", epoch=0, subtopologies=(subtopology,))
    tasks: tuple[Any, ...] | None = () if epoch == 0 else None
    return build(
        schema,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        endpoint_information_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout=MINUTE,
        topology=topology,
        active_tasks=tasks,
        standby_tasks=tasks,
        warmup_tasks=tasks,
        process_id=member,
        user_endpoint=None,
        client_tags=(),
        task_offsets=None,
        task_end_offsets=None,
        shutdown_application=False,
    )


def heartbeat_response(statuses: Mapping[int, str], error_code: int = 0) -> Any:
    """A response with these codes and details of statuses."""
    schema = response_type(STREAMS_GROUP_HEARTBEAT, 0)
    status = tuple(
        part(schema, "Status", status_code=code, status_detail=detail) for code, detail in statuses.items()
    )
    return build(
        schema,
        throttle_time=NO_TIME,
        error_code=ErrorCode(error_code),
        error_message=None,
        member_id="member",
        member_epoch=1,
        heartbeat_interval=NO_TIME,
        acceptable_recovery_lag=0,
        task_offset_interval=NO_TIME,
        status=status or None,
        active_tasks=None,
        standby_tasks=None,
        warmup_tasks=None,
        endpoint_information_epoch=0,
        partitions_by_user_endpoint=None,
    )


def described(
    group: str,
    changelogs: Iterable[str],
    repartitions: Mapping[str, int] | None = None,
    sources: Sequence[str] = ("source",),
) -> Any:
    """The description of a group with these internal topics."""
    schema = response_type(STREAMS_GROUP_DESCRIBE, 0)
    one = part(
        schema,
        "Subtopology",
        subtopology_id="0",
        source_topics=tuple(sources),
        repartition_sink_topics=("sink",),
        state_changelog_topics=_infos(schema, dict.fromkeys(changelogs, 0)),
        repartition_source_topics=_infos(schema, repartitions or {}),
    )
    made = part(
        schema,
        "DescribedGroup",
        error_code=ErrorCode.none,
        error_message=None,
        group_id=group,
        group_state="NotReady",
        group_epoch=1,
        assignment_epoch=1,
        topology=part(schema, "Topology", epoch=0, subtopologies=(one,)),
        members=(),
        authorized_operations=-(2**31),
    )
    return build(schema, throttle_time=NO_TIME, groups=(made,))
