"""Produce requests and responses with several topics and partitions, by name or by topic id."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import PRODUCE
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import request_frame, request_type, response_frame, response_type
from tests.support.messages.requests import build, part


def produce_request(
    correlation_id: int,
    sizes: Mapping[Any, Iterable[int]],
    ids: Mapping[Any, UUID],
    *,
    version: int,
    acks: int = -1,
) -> bytes:
    """A request; by topic the bytes of records of partitions 0, 1 and so on. A topic is a name of `ids` or an
    id.
    """
    schema = request_type(PRODUCE, version)
    topics = tuple(
        part(
            schema,
            "TopicProduceData",
            name=topic,
            topic_id=ids.get(topic, topic),
            partition_data=tuple(
                part(schema, "PartitionProduceData", index=index, records=bytes(size))
                for index, size in enumerate(each)
            ),
        )
        for topic, each in sizes.items()
    )
    message = build(schema, acks=acks, timeout=milliseconds(30_000), topic_data=topics)
    return request_frame(message, correlation_id)


def produce_response(
    correlation_id: int, partitions: Mapping[str, Iterable[int]], ids: Mapping[Any, UUID], *, version: int
) -> bytes:
    """The response of a broker that has stored these partitions of each topic."""
    schema = response_type(PRODUCE, version)
    topics = tuple(
        part(
            schema,
            "TopicProduceResponse",
            name=name,
            topic_id=ids[name],
            partition_responses=tuple(
                part(
                    schema,
                    "PartitionProduceResponse",
                    index=index,
                    error_code=ErrorCode.none,
                    base_offset=5,
                    record_errors=(),
                    error_message=None,
                )
                for index in each
            ),
        )
        for name, each in partitions.items()
    )
    message = build(schema, responses=topics, throttle_time=milliseconds(0))
    return response_frame(message, correlation_id)
