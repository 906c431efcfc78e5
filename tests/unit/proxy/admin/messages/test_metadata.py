"""Metadata requests and responses, of every version, written by kio."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.messages.metadata import (
    ALLOWS_FROM,
    MetadataRequest,
    read_metadata_request,
    read_topic_errors,
)
from proxy.admin.yielder import Yielder
from proxy.wire.api_keys import METADATA
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import (
    read_frame,
    request_frame,
    request_type,
    response_type,
    versions,
)
from tests.support.messages.mutations import payload_of, to_end
from tests.support.messages.requests import build, part

VERSIONS = list(versions(METADATA))
NAMED_BY_ID = UUID(int=7)


def requested(
    version: int, names: list[str] | None, *, create: bool = True, topic_id: UUID | None = None
) -> Any:
    """A Metadata request; `names` None asks for every topic."""
    schema = request_type(METADATA, version)
    topics = None
    if names is not None:
        topics = tuple(part(schema, "MetadataRequestTopic", name=name, topic_id=None) for name in names)
    if topic_id is not None:
        topics = (part(schema, "MetadataRequestTopic", name=None, topic_id=topic_id),)
    return build(
        schema,
        topics=topics,
        allow_auto_topic_creation=create,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )


def read(message: Any) -> MetadataRequest:
    frame = request_frame(message)
    return to_end(
        read_metadata_request(
            read_request_header(Reader([frame], LENGTH_SIZE)), frame[LENGTH_SIZE:], Yielder()
        )
    )


def names_of(frame: bytes, version: int) -> tuple[list[str], bool]:
    message = read_frame(request_type(METADATA, version), frame)
    return [topic.name for topic in message.topics], message.allow_auto_topic_creation


def responded(version: int, topics: dict[str, int]) -> Any:
    """A response with two brokers, and these topics with two partitions each, by name their error codes."""
    schema = response_type(METADATA, version)
    brokers = tuple(
        part(schema, "MetadataResponseBroker", node_id=node, host="h", port=9092, rack="r") for node in (1, 2)
    )
    partitions = tuple(
        part(
            schema,
            "MetadataResponsePartition",
            error_code=ErrorCode.none,
            partition_index=index,
            leader_id=1,
            leader_epoch=3,
            replica_nodes=(1, 2),
            isr_nodes=(1,),
            offline_replicas=(2,),
        )
        for index in range(2)
    )
    return build(
        schema,
        throttle_time=timedelta(0),
        brokers=brokers,
        cluster_id="c",
        controller_id=1,
        error_code=ErrorCode.none,
        topics=tuple(
            part(
                schema,
                "MetadataResponseTopic",
                error_code=ErrorCode(code),
                name=name,
                topic_id=None,
                is_internal=False,
                partitions=partitions,
            )
            for name, code in topics.items()
        ),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_topics_that_a_request_may_create(version: int) -> None:
    request = read(requested(version, ["a", "b", "a"]))
    assert request.names == ["a", "b"]
    assert request.version == max(version, ALLOWS_FROM)
    assert names_of(request.frame(create=False), request.version) == (["a", "b", "a"], False)
    assert names_of(request.frame(create=True), request.version) == (["a", "b", "a"], True)
    assert names_of(request.creating(["b", "\u00e4"]), request.version) == (["b", "\u00e4"], True)


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= ALLOWS_FROM])
def test_the_rest_of_a_request_is_kept(version: int) -> None:
    message = requested(version, ["a"])
    assert read(message).frame(create=True) == request_frame(message)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_for_every_topic_creates_none(version: int) -> None:
    assert read(requested(version, None if version else [])).names == []


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= ALLOWS_FROM])
def test_a_request_without_the_permission_creates_none(version: int) -> None:
    assert read(requested(version, ["a"], create=False)).names == []


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 12])
def test_a_request_by_topic_id_creates_none(version: int) -> None:
    assert read(requested(version, None, topic_id=NAMED_BY_ID)).names == []


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= ALLOWS_FROM])
def test_the_error_codes_of_topics(version: int) -> None:
    topics = {"a": 0, "b": 3, "c": 29}
    payload = payload_of(responded(version, topics))
    assert to_end(read_topic_errors(payload, version, Yielder())) == topics
