"""Whole frames of the load pair, encoded once by kio; the hot loops only change the correlation id.

A frame is its int32 size, a header and a payload: https://kafka.apache.org/protocol#protocol_common
"""

import io
import struct
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import request as fetch_request_schema
from kio.schema.fetch.v12 import response as fetch_response_schema
from kio.schema.produce.v9 import request as produce_request_schema
from kio.schema.produce.v9 import response as produce_response_schema
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.types import TopicName
from kio.serial import entity_writer
from kio.static.primitive import Records, TZAware, TZAwareMicros, i8, i16, i32, i32Timedelta, i64

TOPIC: Final = TopicName("bench")
SIZE: Final = struct.Struct("!i")
REQUEST_CORRELATION: Final = 8
RESPONSE_CORRELATION: Final = 4
"""The offsets of the correlation id in a frame, from the start of the size."""
CORRELATION: Final = struct.Struct("!i")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BATCH_OVERHEAD: Final = 61
"""Bytes of a record batch v2 before its first record."""


def frame(*entities: Any) -> bytes:
    """Encode kio entities as one frame, with the int32 size first."""
    body = io.BytesIO()
    for entity in entities:
        entity_writer(type(entity))(body, entity)
    return SIZE.pack(body.tell()) + body.getvalue()


def record_batch(size: int) -> bytes:
    """Build the largest record batch v2 with one record that has at most `size` bytes.

    Raises ValueError below 68 bytes, the size of a batch with an empty record.
    """
    for length in range(size - _BATCH_OVERHEAD, -1, -1):
        record = Record(
            attributes=i8(0),
            timestamp=TZAwareMicros.parse(_EPOCH),
            offset=i64(0),
            key=None,
            value=bytes(length),
            headers=(),
        )
        out = io.BytesIO()
        batch = NewRecordBatch(
            producer_id=i64(-1),
            producer_epoch=i16(-1),
            base_sequence=i32(-1),
            records=(record,),
            attributes=i16(0),
        )
        write_new_batch(out, batch)
        if out.tell() <= size:
            return out.getvalue()
    raise ValueError(f"a record batch does not fit in {size} bytes; it takes at least 68")


def _request_header(api_key: int, version: int, client_id: str) -> RequestHeader:
    return RequestHeader(
        request_api_key=i16(api_key),
        request_api_version=i16(version),
        correlation_id=i32(0),
        client_id=client_id,
    )


def _milliseconds(value: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=value))


def produce_request(client_id: str, partitions: int, size: int) -> bytes:
    """Produce v9, acks=1, one batch of at most `size` bytes for each of `partitions` partitions."""
    schema = produce_request_schema
    records = Records(record_batch(size))
    data = tuple(schema.PartitionProduceData(index=i32(n), records=records) for n in range(partitions))
    payload = schema.ProduceRequest(
        transactional_id=None,
        acks=i16(1),
        timeout=_milliseconds(30_000),
        topic_data=(schema.TopicProduceData(name=TOPIC, partition_data=data),),
    )
    return frame(_request_header(0, 9, client_id), payload)


def produce_response(partitions: int) -> bytes:
    """A Produce v9 response: every partition accepted, throttle_time_ms 0."""
    schema = produce_response_schema
    parts = tuple(
        schema.PartitionProduceResponse(
            index=i32(n),
            error_code=ErrorCode.none,
            base_offset=i64(0),
            log_append_time=TZAware.parse(_EPOCH),
            log_start_offset=i64(0),
            record_errors=(),
        )
        for n in range(partitions)
    )
    topic = schema.TopicProduceResponse(name=TOPIC, partition_responses=parts)
    return frame(ResponseHeader(correlation_id=i32(0)), schema.ProduceResponse(responses=(topic,)))


def fetch_request(client_id: str, partitions: int, size: int) -> bytes:
    """A full (sessionless) Fetch v12 of `partitions` partitions, at most `size` bytes each."""
    schema = fetch_request_schema
    parts = tuple(
        schema.FetchPartition(partition=i32(n), fetch_offset=i64(0), partition_max_bytes=i32(size))
        for n in range(partitions)
    )
    payload = schema.FetchRequest(
        max_wait=_milliseconds(500),
        min_bytes=i32(1),
        max_bytes=i32(size * partitions),
        topics=(schema.FetchTopic(topic=TOPIC, partitions=parts),),
        forgotten_topics_data=(),
    )
    return frame(_request_header(1, 12, client_id), payload)


def fetch_response(partitions: int, size: int) -> bytes:
    """A Fetch v12 response: one batch of at most `size` bytes per partition, throttle_time_ms 0."""
    schema = fetch_response_schema
    records = Records(record_batch(size))
    parts = tuple(
        schema.PartitionData(
            partition_index=i32(n),
            error_code=ErrorCode.none,
            high_watermark=i64(1 << 30),
            last_stable_offset=i64(1 << 30),
            log_start_offset=i64(0),
            aborted_transactions=None,
            records=records,
        )
        for n in range(partitions)
    )
    payload = schema.FetchResponse(
        throttle_time=_milliseconds(0),
        error_code=ErrorCode.none,
        responses=(schema.FetchableTopicResponse(topic=TOPIC, partitions=parts),),
    )
    return frame(ResponseHeader(correlation_id=i32(0)), payload)
