"""BoundedRecords on batches that aiokafka has written, and its consumer at a topic with a bomb."""

import asyncio
import gzip
import tracemalloc
from collections.abc import Callable

import cramjam
import pytest
from aiokafka import TopicPartition
from aiokafka.codec import lz4_encode, snappy_encode, zstd_encode
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from proxy.store.quota_records import Unreadable, decode
from proxy.store.sharing.share_records import decode_report
from proxy.upstream.bounded_records import MAX_BATCH_BYTES, BoundedRecords
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.kafka_clients import kafka_consumer, kafka_producer
from tests.support.process.log_broker import LogBroker

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BOMB = 16 << 20
each_codec = pytest.mark.parametrize("codec", CODECS)
each_kind = pytest.mark.parametrize(
    ("codec", "magic"),
    [(codec, 2) for codec in CODECS] + [("gzip", 0), ("snappy", 0), ("gzip", 1), ("snappy", 1), ("lz4", 1)],
)


def batch(codec: int, value: bytes, magic: int = 2, records: int = 1) -> bytes:
    if magic == 2:
        builder = DefaultRecordBatchBuilder(magic, codec, 0, -1, -1, -1, 1 << 30)
        for offset in range(records):
            builder.append(offset, 1, b"k", value, [])
    else:
        builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
        for offset in range(records):
            builder.append(offset, 1, b"k", value)
    return bytes(builder.build())


def values(data: bytes) -> list[bytes | None]:
    records = BoundedRecords(data)
    assert records.size_in_bytes() == len(data)
    found = []
    while records.has_next():
        found += [record.value for record in records.next_batch()]
    assert records.next_batch() is None
    return found


@each_kind
def test_batches_within_the_bound_are_read(codec: str, magic: int) -> None:
    first = batch(CODECS[codec], b"x" * 1000, magic, records=50)
    assert values(first + batch(0, b"plain", magic)) == [b"x" * 1000] * 50 + [b"plain"]


@each_kind
def test_a_bomb_is_one_record_that_nobody_reads(codec: str, magic: int) -> None:
    bomb = batch(CODECS[codec], bytes(BOMB), magic)
    data = bomb + batch(0, b"next", magic)
    tracemalloc.start()
    try:
        skipped, after = values(data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * MAX_BATCH_BYTES
    assert after == b"next"
    with pytest.raises(Unreadable, match=str(MAX_BATCH_BYTES)):
        decode(BoundedRecords(data).next_batch()._record.key, skipped)
    with pytest.raises(Unreadable):
        decode_report(skipped)


def _members(data: bytes) -> bytes:
    return b"".join([gzip.compress(data)] * 3)


@pytest.mark.parametrize(
    ("codec", "compress"),
    [
        (1, gzip.compress),
        (1, _members),
        (2, snappy_encode),
        (2, cramjam.snappy.compress_raw),
        (3, lz4_encode),
        (4, zstd_encode),
    ],
)
@pytest.mark.parametrize("damage", ["cut off", "too large", "nothing"])
def test_a_payload_that_is_not_of_its_codec_is_skipped(
    codec: int, compress: Callable[[bytes], bytes], damage: str
) -> None:
    whole = batch(0, b"v")
    payload = bytes(compress(bytes(MAX_BATCH_BYTES + 1 if damage == "too large" else 5000)))
    payload = {"cut off": payload[:-3], "too large": payload, "nothing": b"\x01"}[damage]
    head = bytearray(whole[:61])
    head[8:12] = (len(head) - 12 + len(payload)).to_bytes(4, "big")
    head[22] |= codec
    made = BoundedRecords(bytes(head) + payload).next_batch()
    assert [record.offset for record in made] == [0]
    assert (made.next_offset, made.validate_crc()) == (1, True)
    assert b"not readable" in next(iter(made)).value


@each_codec
async def test_a_consumer_goes_on_behind_a_bomb(codec: str) -> None:
    async with LogBroker("t", append_time_ms=5) as broker:
        cluster = ClusterAccess((broker.address,), 5.0)
        async with kafka_producer(
            cluster, compression_type=codec, max_batch_size=BOMB, max_request_size=BOMB
        ) as producer:
            await producer.send_and_wait("t", bytes(MAX_BATCH_BYTES))
            await producer.send_and_wait("t", b"next")
        async with kafka_consumer(cluster) as consumer:
            partition = TopicPartition("t", 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            bomb = await asyncio.wait_for(consumer.getone(), 30)
            after = await asyncio.wait_for(consumer.getone(), 30)
    assert (bomb.offset, after.offset, after.value) == (0, 1, b"next")
    assert bomb.timestamp_type == 1
    assert b"not readable" in bomb.value
