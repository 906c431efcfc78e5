"""The frames of the load pair, read back by kio."""

import struct
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.records.readers import read_batch
from kio.serial import entity_reader

from bench.load import frames


def read(frame: bytes, schema: Any) -> tuple[Any, Any]:
    """Header and payload of a frame; nothing may be left over, and the size must be right."""
    assert struct.unpack_from("!i", frame) == (len(frame) - 4,)
    header, length = entity_reader(schema.__header_schema__)(frame, 4)
    payload, payload_length = entity_reader(schema)(frame, 4 + length)
    assert 4 + length + payload_length == len(frame)
    return header, payload


@pytest.mark.parametrize("size", [68, 100, 124, 125, 1024, 8300, 1_000_000])
def test_a_record_batch_is_as_large_as_asked_and_reads_back(size: int) -> None:
    batch = frames.record_batch(size)
    assert size - 2 <= len(batch) <= size
    decoded, length = read_batch(batch, 0)
    assert length == len(batch)
    assert len(decoded.records) == 1


def test_a_record_batch_says_when_its_size_is_too_small() -> None:
    with pytest.raises(ValueError, match=r"\b67 bytes"):
        frames.record_batch(67)


@pytest.mark.parametrize("partitions", [1, 24, 126])
def test_produce_request(partitions: int) -> None:
    frame = bytearray(frames.produce_request("tenant-7", partitions, 100))
    frames.CORRELATION.pack_into(frame, frames.REQUEST_CORRELATION, 1234567)
    header, payload = read(bytes(frame), load_request_schema(0, 9))
    assert (header.request_api_key, header.request_api_version) == (0, 9)
    assert (header.correlation_id, header.client_id) == (1234567, "tenant-7")
    assert payload.acks == 1
    (topic,) = payload.topic_data
    assert topic.name == "bench"
    assert [part.index for part in topic.partition_data] == list(range(partitions))
    assert {len(part.records) for part in topic.partition_data} == {100}


@pytest.mark.parametrize("partitions", [1, 24, 126])
def test_produce_response(partitions: int) -> None:
    frame = bytearray(frames.produce_response(partitions))
    frames.CORRELATION.pack_into(frame, frames.RESPONSE_CORRELATION, 1234567)
    header, payload = read(bytes(frame), load_response_schema(0, 9))
    assert header.correlation_id == 1234567
    assert payload.throttle_time.total_seconds() == 0
    (topic,) = payload.responses
    assert [part.index for part in topic.partition_responses] == list(range(partitions))
    assert {part.error_code for part in topic.partition_responses} == {0}


def test_fetch_request() -> None:
    frame = bytearray(frames.fetch_request("tenant-7", 3, 5000))
    frames.CORRELATION.pack_into(frame, frames.REQUEST_CORRELATION, 99)
    header, payload = read(bytes(frame), load_request_schema(1, 12))
    assert (header.request_api_key, header.request_api_version) == (1, 12)
    assert (header.correlation_id, header.client_id) == (99, "tenant-7")
    assert (payload.max_bytes, payload.replica_id, payload.session_epoch) == (15000, -1, -1)
    (topic,) = payload.topics
    assert [part.partition for part in topic.partitions] == [0, 1, 2]
    assert {part.partition_max_bytes for part in topic.partitions} == {5000}


def test_fetch_response() -> None:
    frame = bytearray(frames.fetch_response(3, 5000))
    frames.CORRELATION.pack_into(frame, frames.RESPONSE_CORRELATION, 99)
    header, payload = read(bytes(frame), load_response_schema(1, 12))
    assert header.correlation_id == 99
    assert (payload.throttle_time.total_seconds(), payload.error_code) == (0, 0)
    (topic,) = payload.responses
    assert [len(part.records) for part in topic.partitions] == [5000] * 3
