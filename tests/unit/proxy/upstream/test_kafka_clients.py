"""The proxy's clients, on a broker that creates the topics that are asked for."""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from proxy.upstream.addresses import join_address
from proxy.upstream.kafka_clients import AIOKafkaConsumer, AIOKafkaProducer
from tests.support.process.log_broker import LogBroker
from tests.support.waiting import reached


async def test_no_client_creates_a_topic_that_was_deleted() -> None:
    async with LogBroker("t", creates_when_asked=True) as broker:
        servers = join_address(*broker.address)
        consumer = AIOKafkaConsumer(bootstrap_servers=servers, metadata_max_age_ms=50)
        producer = AIOKafkaProducer(bootstrap_servers=servers, metadata_max_age_ms=50, request_timeout_ms=500)
        async with consumer, producer:
            consumer.assign([TopicPartition("t", 0)])
            await producer.send_and_wait("t", b"first")
            broker.delete()
            asked = broker.metadata_requests
            with suppress(KafkaError):
                await producer.send_and_wait("t", b"second")
            await reached(lambda: broker.metadata_requests > asked + 4, "requests of both")
            assert broker.topic_id is None


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_every_codec_can_be_read(codec: str) -> None:
    """A broker compresses the records of any topic anew, with `compression.type`."""
    async with LogBroker("t") as broker:
        servers = join_address(*broker.address)
        async with AIOKafkaProducer(bootstrap_servers=servers, compression_type=codec) as producer:
            await producer.send_and_wait("t", b"x" * 1000)
        async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
            partition = TopicPartition("t", 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            record = await asyncio.wait_for(consumer.getone(), 30)
        assert record.value == b"x" * 1000
