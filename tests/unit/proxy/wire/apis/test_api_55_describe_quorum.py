from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import DESCRIBE_QUORUM
from tests.support.messages.kio_messages import BROKER_HOST, read_frame, response_frame, response_type
from tests.support.messages.reading import edited, read_response
from tests.support.messages.requests import build, part

NODES_FROM = 2


def response(version: int) -> Any:
    """A response with two voters and an observer; from v2 on, with the addresses of both voters."""
    message = response_type(DESCRIBE_QUORUM, version)

    def replica(replica_id: int) -> Any:
        times = {"last_fetch_timestamp": 1, "last_caught_up_timestamp": 2}
        directory = UUID(int=replica_id)
        values = {"replica_id": replica_id, "replica_directory_id": directory, "log_end_offset": 7}
        return part(message, "ReplicaState", **values, **times)

    partition = part(
        message,
        "PartitionData",
        partition_index=0,
        error_code=ErrorCode.none,
        error_message="of a partition",
        leader_id=1,
        leader_epoch=3,
        high_watermark=7,
        current_voters=(replica(1), replica(2)),
        observers=(replica(3),),
    )
    topic = part(message, "TopicData", topic_name="__cluster_metadata", partitions=(partition,))
    nodes = tuple(_node(message, node_id) for node_id in (1, 2)) if version >= NODES_FROM else ()
    values = {"error_code": ErrorCode.none, "error_message": "a message", "topics": (topic,), "nodes": nodes}
    return build(message, **values)


def _node(message: type[Any], node_id: int) -> Any:
    listeners = tuple(
        part(message, "Listener", name=name, host=f"{BROKER_HOST}.{node_id}", port=9093)
        for name in ("CONTROLLER", "SECOND")
    )
    return part(message, "Node", node_id=node_id, listeners=listeners)


@pytest.mark.parametrize("version", range(NODES_FROM))
def test_older_versions_have_no_address_and_stay_as_they_are(version: int) -> None:
    frame = response_frame(response(version))
    assert edited([frame], read_response(DESCRIBE_QUORUM, version, [frame])) == frame


def test_controllers_have_no_address() -> None:
    sent = response(NODES_FROM)
    frame = response_frame(sent)
    changed = edited([frame], read_response(DESCRIBE_QUORUM, NODES_FROM, [frame]))
    assert BROKER_HOST.encode() in frame
    assert read_frame(type(sent), changed) == replace(sent, nodes=())
