"""The proxy's clients, on a broker that creates the topics that are asked for."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from proxy.security.access import Access
from proxy.security.broker_hosts import BrokerHosts
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.kafka_clients import kafka_consumer, kafka_producer
from tests.support.process.log_broker import LogBroker
from tests.support.waiting import reached


async def test_no_client_creates_a_topic_that_was_deleted() -> None:
    async with LogBroker("t", creates_when_asked=True) as broker:
        cluster = ClusterAccess((broker.address,), 5.0)
        consumer = kafka_consumer(cluster, metadata_max_age_ms=50)
        producer = kafka_producer(cluster, metadata_max_age_ms=50)
        async with consumer, producer:
            consumer.assign([TopicPartition("t", 0)])
            await producer.send_and_wait("t", b"first")
            broker.delete()
            asked = broker.metadata_requests
            sending = asyncio.ensure_future(producer.send_and_wait("t", b"second"))
            await reached(lambda: broker.metadata_requests > asked + 4, "requests of both")
            assert broker.topic_id is None
            broker.create()
            await sending


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_every_codec_can_be_read(codec: str) -> None:
    """A broker compresses the records of any topic anew, with `compression.type`."""
    async with LogBroker("t") as broker:
        cluster = ClusterAccess((broker.address,), 5.0)
        async with kafka_producer(cluster, compression_type=codec) as producer:
            await producer.send_and_wait("t", b"x" * 1000)
        async with kafka_consumer(cluster) as consumer:
            partition = TopicPartition("t", 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            record = await asyncio.wait_for(consumer.getone(), 30)
        assert record.value == b"x" * 1000


class LyingBroker(LogBroker):
    """Names itself at another address."""

    def __init__(self, trap: tuple[str, int]) -> None:
        super().__init__("t")
        self.trap = trap

    async def respond(self, request: Any) -> Any:
        address, self.address = self.address, self.trap
        try:
            return await super().respond(request)
        finally:
            self.address = address


async def test_no_client_connects_where_upstream_hosts_does_not_allow() -> None:
    connections = 0

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    rejected: list[tuple[str, int]] = []
    trap = ("localhost", server.sockets[0].getsockname()[1])
    async with server, LyingBroker(trap) as broker:
        hosts = BrokerHosts(("kafka-*", "10.0.0.0/8"), (broker.address,), lambda *at: rejected.append(at))
        cluster = ClusterAccess((broker.address,), 5.0, Access(hosts=hosts))
        consumer = kafka_consumer(cluster, request_timeout_ms=500, retry_backoff_ms=10)
        producer = kafka_producer(cluster, request_timeout_ms=500, retry_backoff_ms=10)
        with suppress(KafkaError):
            await producer.start()
            await producer.send_and_wait("t", b"x")
        with suppress(KafkaError):
            await consumer.start()
            await consumer.end_offsets([TopicPartition("t", 0)])
        await producer.stop()
        await consumer.stop()
        assert set(rejected) == {trap}
        assert connections == 0
