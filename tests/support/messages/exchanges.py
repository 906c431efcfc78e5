"""Requests and responses as frames with the sizes and waits that a story needs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import API_VERSIONS, FETCH, PRODUCE
from tests.support.messages import old_messages
from tests.support.messages.kio_messages import (
    framed,
    request_frame,
    request_type,
    response_frame,
    response_type,
)

TOPIC: Final = "orders"
FIRST_PRODUCE_OF_KIO: Final = 3
LENGTH_FIELD: Final = 4


def chunks(frame: bytes, size: int = 65_536) -> list[bytes]:
    """Split a frame into parts of this size, as a socket delivers it."""
    return [frame[at : at + size] for at in range(0, len(frame), size)]


def milliseconds(value: int) -> timedelta:
    return timedelta(milliseconds=value)


@lru_cache(maxsize=32)
def produce(
    correlation_id: int, size: int = 100, version: int = 7, acks: int = 1, client_id: str | None = "client"
) -> bytes:
    """A Produce request whose header and body take `size` bytes."""

    def build(records: bytes) -> bytes:
        if version < FIRST_PRODUCE_OF_KIO:
            topics = {TOPIC: {0: records}}
            return old_messages.produce_request(version, correlation_id, client_id, acks, topics)
        request = _produce_request(version, acks, records)
        return request_frame(request, correlation_id, client_id)

    return _sized(build, size + LENGTH_FIELD)


def _produce_request(version: int, acks: int, records: bytes) -> Any:
    request = request_type(PRODUCE, version)
    topic = request.__annotations__["topic_data"].__args__[0]
    partition = topic.__annotations__["partition_data"].__args__[0]
    return request(
        transactional_id=None,
        acks=acks,
        timeout=milliseconds(30_000),
        topic_data=(topic(name=TOPIC, partition_data=(partition(index=0, records=records),)),),
    )


@lru_cache(maxsize=32)
def produced(correlation_id: int, throttle_ms: int = 0, version: int = 7) -> bytes:
    """The response to a Produce request."""
    if version < FIRST_PRODUCE_OF_KIO:
        return old_messages.produce_response(version, correlation_id, {TOPIC: {0: 17}}, throttle_ms)
    response = response_type(PRODUCE, version)
    topic = response.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partition_responses"].__args__[0]
    more = {"record_errors": ()} if version >= 8 else {}
    partitions = (partition(index=0, error_code=ErrorCode.none, base_offset=17, **more),)
    message = response(
        responses=(topic(name=TOPIC, partition_responses=partitions),),
        throttle_time=milliseconds(throttle_ms),
    )
    return response_frame(message, correlation_id)


def fetch(
    correlation_id: int,
    max_bytes: int = 50 << 20,
    min_bytes: int = 1,
    version: int = 11,
    client_id: str | None = "client",
) -> bytes:
    """A consumer's Fetch request."""
    request = request_type(FETCH, version)
    more: dict[str, Any] = {"forgotten_topics_data": ()} if version >= 7 else {}
    if version >= 11:
        more["rack_id"] = ""
    if version < 15:
        more["replica_id"] = -1
    message = request(max_wait=milliseconds(500), min_bytes=min_bytes, max_bytes=max_bytes, topics=(), **more)
    return request_frame(message, correlation_id, client_id)


def fetched(correlation_id: int, size: int = 200, throttle_ms: int = 0, version: int = 11) -> bytes:
    """The response to a Fetch request; its body and four bytes are `size` long, as quotas count it."""

    def build(records: bytes) -> bytes:
        batch = record_batch(len(records)) if records else b""
        message = fetch_response(version, batch)
        if hasattr(message, "throttle_time"):
            message = replace(message, throttle_time=milliseconds(throttle_ms))
        return response_frame(message, correlation_id)

    header = 5 if version >= 12 else 4
    return _sized(build, size + header)


def fetch_response(version: int, records: bytes, **fields: Any) -> Any:
    """A Fetch response with one partition that has these records."""
    response = response_type(FETCH, version)
    topic = response.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partitions"].__args__[0]
    partitions = (
        partition(
            partition_index=0,
            error_code=ErrorCode.none,
            high_watermark=17,
            aborted_transactions=None,
            records=records,
        ),
    )
    name = {"topic": TOPIC} if version < 13 else {"topic_id": None}
    if version >= 7:
        fields.setdefault("error_code", ErrorCode.none)
    return response(
        throttle_time=milliseconds(0), responses=(topic(partitions=partitions, **name),), **fields
    )


def record_batch(size: int) -> bytes:
    """Bytes with the head of a record batch that is `size` bytes long in all."""
    return bytes(8) + max(size - 12, 0).to_bytes(4, "big") + b"r" * (size - 12)


def fetched_records(version: int, records: Sequence[bytes]) -> bytes:
    """The response to Fetch request 1, with these records of the partitions from 0 on."""
    message = fetch_response(version, b"")
    (topic,) = message.responses
    (partition,) = topic.partitions
    partitions = [replace(partition, partition_index=at, records=part) for at, part in enumerate(records)]
    return response_frame(replace(message, responses=(replace(topic, partitions=tuple(partitions)),)), 1)


def opaque(correlation_id: int, api_key: int = 42, version: int = 99, body: bytes = b"as it is") -> bytes:
    """A request of an API that the proxy does not read."""
    head = api_key.to_bytes(2, "big") + version.to_bytes(2, "big")
    return framed(head + correlation_id.to_bytes(4, "big") + b"\x00\x06client" + body)


def responded(correlation_id: int, body: bytes = b"the response") -> bytes:
    """A response of which the proxy reads only the correlation id."""
    return framed(correlation_id.to_bytes(4, "big") + body)


def api_versions(correlation_id: int, version: int = 99) -> bytes:
    """An ApiVersions request; the proxy responds to v99 itself."""
    return opaque(correlation_id, API_VERSIONS, version, b"\x00\x07tagged\x00")


def _sized(build: Callable[[bytes], bytes], size: int) -> bytes:
    """Fill a frame to this size with records, whose length field may itself need more bytes."""
    fill = size - len(build(b""))
    for _ in range(3):
        frame = build(bytes(fill))
        if len(frame) == size:
            return frame
        fill -= len(frame) - size
    raise ValueError(f"no frame has exactly {size} bytes")
