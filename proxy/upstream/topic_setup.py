"""Makes a topic of the proxy's own where it is missing, and looks whether it is fit for its use."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from proxy.errors import BadResponse, UpstreamUnavailable
from proxy.security.access import PLAINTEXT, Access
from proxy.upstream.broker_connection import BrokerConnection, connect_to_any

AUDIT_DAYS: Final = 30
"""So long compaction keeps a change that a later one has replaced: the topic is an audit trail."""
CONFIGS: Final = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(AUDIT_DAYS * 86_400_000)}
REPLICAS: Final = 3
"""Where there are as many brokers, as for Kafka's own topics: the brokers' default is 1 unless somebody has
thought of it, and a proxy does not start while the topic's last replica is away."""
TOPIC_RESOURCE: Final = i8(2)
CREATE_SECONDS: Final = 10


@dataclass(frozen=True)
class TopicPlan:
    """The shape of a topic that is made."""

    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    """Whether a topic of another shape is unfit."""


STORE: Final = TopicPlan(1, CONFIGS, strict=True)


async def prepare_topic(
    bootstrap: Sequence[tuple[str, int]],
    topic: str,
    connect_seconds: float,
    create: bool,
    plan: TopicPlan = STORE,
    access: Access = PLAINTEXT,
) -> UUID:
    """The id of the topic, which exists and is fit; made where it is missing and `create` is set.

    Raises UpstreamUnavailable with the reason, OSError or EOFError.
    """
    async with asyncio.timeout(connect_seconds * (len(bootstrap) + 2) + CREATE_SECONDS):
        async with _connection(bootstrap, connect_seconds, access) as broker:
            found, answer = await _look_up(broker, topic)
            if found.error_code == ErrorCode.unknown_topic_or_partition and create:
                controller = [(node.host, int(node.port)) for node in answer.brokers]
                preferred = [
                    (node.host, int(node.port))
                    for node in answer.brokers
                    if node.node_id == answer.controller_id
                ]
                # Before KRaft only the controller makes topics; with it any broker passes the request on.
                async with _connection(preferred or controller, connect_seconds, access) as maker:
                    await _create(maker, topic, plan, min(REPLICAS, len(answer.brokers)))
                found, _ = await _look_up(broker, topic)
            _check(found, topic)
            if plan.strict:
                _check_partitions(found, topic)
                await _check_policy(broker, topic)
            assert found.topic_id is not None
            return found.topic_id


@asynccontextmanager
async def _connection(
    addresses: Sequence[tuple[str, int]], connect_seconds: float, access: Access
) -> AsyncIterator[BrokerConnection]:
    broker = await connect_to_any(addresses, access, connect_seconds)
    try:
        yield broker
    finally:
        broker.close()


async def _look_up(broker: BrokerConnection, topic: str) -> tuple[MetadataResponseTopic, MetadataResponse]:
    request = MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    answer = await broker.ask(request, MetadataResponse)
    if len(answer.topics) != 1:
        raise BadResponse(f"asked about one topic, a broker told of {len(answer.topics)}")
    return answer.topics[0], answer


async def _create(broker: BrokerConnection, topic: str, plan: TopicPlan, replicas: int) -> None:
    wanted = CreatableTopic(
        name=TopicName(topic),
        num_partitions=i32(plan.partitions),
        replication_factor=i16(replicas),
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in plan.configs.items()),
    )
    timeout = i32Timedelta.parse(timedelta(seconds=CREATE_SECONDS))
    answer = await broker.ask(CreateTopicsRequest(topics=(wanted,), timeout=timeout), CreateTopicsResponse)
    for result in answer.topics:
        # Another proxy may have been first.
        if result.error_code not in (ErrorCode.none, ErrorCode.topic_already_exists):
            why = result.error_message or result.error_code.name
            raise UpstreamUnavailable(f"topic {topic} is missing and cannot be made: {why}")


def _check(found: MetadataResponseTopic, topic: str) -> None:
    if found.error_code == ErrorCode.unknown_topic_or_partition:
        raise UpstreamUnavailable(f"topic {topic} does not exist (any more)")
    if found.error_code == ErrorCode.topic_authorization_failed:
        raise UpstreamUnavailable(
            f"topic {topic} may not be read: grant the proxy Describe, Read and Write on it"
        )
    if found.error_code != ErrorCode.none:
        raise UpstreamUnavailable(f"topic {topic} cannot be used: {found.error_code.name}")


def _check_partitions(found: MetadataResponseTopic, topic: str) -> None:
    if len(found.partitions) != 1:
        raise UpstreamUnavailable(
            f"topic {topic} has {len(found.partitions)} partitions; the store takes one"
        )


async def _check_policy(broker: BrokerConnection, topic: str) -> None:
    """A topic that deletes by age would lose quotas. Who may not ask for its configuration is trusted."""
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=("cleanup.policy",)
    )
    answer = await broker.ask(DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse)
    for result in answer.results:
        for config in result.configs:
            if config.name == "cleanup.policy" and config.value != "compact":
                raise UpstreamUnavailable(
                    f"topic {topic} has cleanup.policy={config.value}, which loses quotas; set it to compact"
                )
