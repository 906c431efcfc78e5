"""aiokafka's clients, as the proxy uses them.

None of their metadata requests creates a topic. A broker with auto.create.topics.enable, which is Kafka's
default, creates each topic that such a request names. If a topic of the proxy were deleted, its own clients
would create it again at once, with the broker's default configs, which do not fit: the store's topic has to
be compacted, and the shares topic needs the broker's timestamps. prepare_topic() creates them as they have to
be.

They connect only to addresses that `upstream.hosts` allows, and decompress batches only within a bound.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from ssl import SSLContext
from typing import Any, Final

import aiokafka.client
import aiokafka.consumer.fetcher
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest

from proxy.security.broker_hosts import ANY_HOST, BrokerHosts
from proxy.upstream.bounded_records import BoundedRecords
from proxy.upstream.cluster_access import ClusterAccess


def kafka_consumer(cluster: ClusterAccess, **options: Any) -> AIOKafkaConsumer:
    """Return a consumer that is not started. `options` are aiokafka's."""
    consumer = AIOKafkaConsumer(**cluster.for_aiokafka(), **options)
    _restrict(consumer._client, cluster.access.hosts)
    return consumer


def kafka_producer(cluster: ClusterAccess, **options: Any) -> AIOKafkaProducer:
    """Return a producer that is not started. `options` are aiokafka's."""
    producer = AIOKafkaProducer(**cluster.for_aiokafka(), **options)
    _restrict(producer.client, cluster.access.hosts)
    return producer


def leader_address(consumer: AIOKafkaConsumer, partition: TopicPartition) -> tuple[str, int] | None:
    """The host and port of a partition's leader, as the consumer knows it; None if it knows none."""
    cluster = consumer._client.cluster
    node = cluster.broker_metadata(cluster.leader_for_partition(partition))
    return None if node is None else (node.host, node.port)


_hosts: Final[ContextVar[BrokerHosts]] = ContextVar("_hosts", default=ANY_HOST)
"""Where the connection that is being opened may go; the bootstrap addresses are always allowed."""


def _restrict(client: Any, hosts: BrokerHosts) -> None:
    """Let a client connect to these brokers only. aiokafka has no option for this."""
    get_connection = client._get_conn

    async def get_allowed(*args: Any, **options: Any) -> Any:
        token = _hosts.set(hosts)
        try:
            return await get_connection(*args, **options)
        finally:
            _hosts.reset(token)

    client._get_conn = get_allowed


class _Loop:
    """An event loop that connects only to allowed addresses."""

    def __init__(self, loop: asyncio.AbstractEventLoop, hosts: BrokerHosts) -> None:
        self._loop = loop
        self._allowed = hosts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(
        self, protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, ssl: SSLContext | None
    ) -> tuple[asyncio.Transport, None]:
        return await self._allowed.connect(protocol, host, port, ssl), None


async def _create_conn(host: str, port: int, **options: Any) -> AIOKafkaConnection:
    """aiokafka's create_conn(), with an event loop that connects only to allowed addresses."""
    connection = AIOKafkaConnection(host, port, **options)
    connection._loop = _Loop(connection._loop, _hosts.get())
    await connection.connect()
    return connection


class _MetadataRequest(MetadataRequest):  # type: ignore[misc]  # aiokafka has no types
    """aiokafka's request, which creates no topic."""

    def __init__(self, topics: Any = None) -> None:
        super().__init__(topics, allow_auto_topic_creation=False)


# aiokafka has no option for these.
aiokafka.client.MetadataRequest = _MetadataRequest
aiokafka.client.create_conn = _create_conn
aiokafka.consumer.fetcher.MemoryRecords = BoundedRecords
