"""prepare_topic(): creates a topic of the proxy if it is missing, and checks that it is fit for its use."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from proxy.errors import UpstreamUnavailable
from proxy.upstream.broker_connection import BrokerConnection, Check
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.topic_leader import leader_of, look_up, until_it_responds

AUDIT_DAYS: Final = 30
"""For how long compaction keeps records that were replaced: the topic is an audit log."""
CONFIGS: Final = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(AUDIT_DAYS * 86_400_000)}
REPLICAS: Final = 3
"""As for Kafka's internal topics, if there are as many brokers. Kafka's default replication factor is 1, and
a proxy cannot start while no replica of the topic is available.
"""
TOPIC_RESOURCE: Final = i8(2)
"""Kafka's ConfigResource.Type of a topic."""
NOT_AUTHORIZED: Final = (ErrorCode.topic_authorization_failed, ErrorCode.cluster_authorization_failed)
"""The errors that mean that the proxy's user lacks a right."""
CREATE_SECONDS: Final = 10
"""The request's timeout; creating one topic takes a controller less than a second."""
KNOWN_AFTER: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Pauses in seconds between the look-ups of a new topic: a broker learns of it later than the controller."""


@dataclass(frozen=True)
class TopicPlan:
    """How a topic of the proxy is created, and what it must be like."""

    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    """Whether an existing topic must have one partition and be compacted."""


STORE: Final = TopicPlan(1, CONFIGS, strict=True)


async def prepare_topic(cluster: ClusterAccess, topic: str, *, create: bool, plan: TopicPlan = STORE) -> UUID:
    """Return the id of the topic; create it if it is missing and `create` is set.

    A leader that has failed (ClusterAccess.failed) has to respond first.

    Raises UpstreamUnavailable if the topic does not exist, cannot be created or is unfit, or if its leader
    does not respond; OSError or EOFError.
    """
    seen: list[tuple[MetadataResponseTopic, MetadataResponse]] = []

    async def check(broker: BrokerConnection) -> None:
        seen.append(await look_up(broker, topic))

    addresses = cluster.addresses
    async with asyncio.timeout(cluster.connect_seconds * (len(addresses) + 2) + CREATE_SECONDS):
        # A broker that hangs accepts connections, so the first one that responds is used.
        async with _connection(addresses, cluster, check) as broker:
            found, metadata = seen[-1]
            leader = leader_of(found, metadata)
            if found.error_code == ErrorCode.unknown_topic_or_partition and create:
                controller = [(node.host, int(node.port)) for node in metadata.brokers]
                preferred = [
                    (node.host, int(node.port))
                    for node in metadata.brokers
                    if node.node_id == metadata.controller_id
                ]
                # With ZooKeeper, only the controller creates topics; with KRaft, any broker forwards the
                # request.
                async with _connection(preferred or controller, cluster) as creator:
                    await _create(creator, topic, plan, min(REPLICAS, len(metadata.brokers)))
                found = await _look_up_created(broker, topic)
            _check(found, topic)
            if plan.strict:
                _check_partitions(found, topic)
                await _check_policy(broker, topic)
            assert found.topic_id is not None
            if leader in cluster.failed:
                await until_it_responds(leader, broker, topic, cluster)
            return found.topic_id


@asynccontextmanager
async def _connection(
    addresses: Sequence[tuple[str, int]], cluster: ClusterAccess, check: Check | None = None
) -> AsyncIterator[BrokerConnection]:
    broker = await cluster.connect(addresses, check)
    try:
        yield broker
    finally:
        broker.close()


async def _look_up_created(broker: BrokerConnection, topic: str) -> MetadataResponseTopic:
    found, _ = await look_up(broker, topic)
    for pause in KNOWN_AFTER:
        if found.error_code != ErrorCode.unknown_topic_or_partition:
            break
        await asyncio.sleep(pause)
        found, _ = await look_up(broker, topic)
    return found


async def _create(broker: BrokerConnection, topic: str, plan: TopicPlan, replicas: int) -> None:
    """Create the topic, unless another proxy has created it meanwhile. Raises UpstreamUnavailable."""
    # Imported here: only the first of all proxies creates the topic.
    from kio.schema.create_topics.v7 import request as create_request
    from kio.schema.create_topics.v7.response import CreateTopicsResponse

    wanted = create_request.CreatableTopic(
        name=TopicName(topic),
        num_partitions=i32(plan.partitions),
        replication_factor=i16(replicas),
        assignments=(),
        configs=tuple(
            create_request.CreatableTopicConfig(name=name, value=value)
            for name, value in plan.configs.items()
        ),
    )
    timeout = i32Timedelta.parse(timedelta(seconds=CREATE_SECONDS))
    request = create_request.CreateTopicsRequest(topics=(wanted,), timeout=timeout)
    response = await broker.ask(request, CreateTopicsResponse)
    for result in response.topics:
        # Another proxy may have created it meanwhile.
        if result.error_code not in (ErrorCode.none, ErrorCode.topic_already_exists):
            why = result.error_message or result.error_code.name
            if result.error_code in NOT_AUTHORIZED:
                rights = grant(topic, "Create, Describe, Read and Write")
                why = f"{why.rstrip('.')}; {rights}, or create the topic"
            raise UpstreamUnavailable(f"topic {topic} does not exist and cannot be created: {why}")


def grant(topic: str, rights: str) -> str:
    """What to do if the proxy's user lacks these rights."""
    return f"grant the proxy's user {rights} on topic {topic}"


def _check(found: MetadataResponseTopic, topic: str) -> None:
    if found.error_code == ErrorCode.unknown_topic_or_partition:
        raise UpstreamUnavailable(f"topic {topic} does not exist")
    if found.error_code == ErrorCode.topic_authorization_failed:
        why = grant(topic, "Describe, Read and Write")
        raise UpstreamUnavailable(f"the proxy may not describe topic {topic}: {why}")
    if found.error_code != ErrorCode.none:
        raise UpstreamUnavailable(f"topic {topic} cannot be used: {found.error_code.name}")


def _check_partitions(found: MetadataResponseTopic, topic: str) -> None:
    if len(found.partitions) != 1:
        raise UpstreamUnavailable(
            f"topic {topic} has {len(found.partitions)} partitions; the store needs exactly one"
        )


async def _check_policy(broker: BrokerConnection, topic: str) -> None:
    """Raise UpstreamUnavailable for a topic that deletes records by age: it would lose quotas.

    A cluster that does not let the proxy describe the topic's configs is trusted.
    """
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=("cleanup.policy",)
    )
    response = await broker.ask(DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse)
    for result in response.results:
        for config in result.configs:
            if config.name == "cleanup.policy" and config.value != "compact":
                raise UpstreamUnavailable(
                    f"topic {topic} has cleanup.policy={config.value}, which loses quotas; set it to compact"
                )
