"""ConfigClient: quotas of topics and brokers, over DescribeConfigs and IncrementalAlterConfigs.

A quota proxy describes them all at once, with their sources, as the config `quota.layers` of the topic
`<default>` (proxy.store.layer_report). A plain broker has no such topic, and stores none of these quotas.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from proxy.admin.messages import config_resources
from proxy.admin.messages.client_quotas import EXPIRES_AT_MS
from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.client import MAX_ENTITIES, QuotaClient
from proxy.cli.quotas.cluster.retries import (
    PAUSES,
    AlterationResult,
    RejectedAlteration,
    alter_again,
    ask_again,
    reason,
)
from proxy.cli.quotas.entity import Entity, show_name
from proxy.errors import UpstreamUnavailable
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC
from proxy.store.layer_report import ConfigReport, decode_report
from proxy.upstream.cluster_access import ClusterAccess

if TYPE_CHECKING:
    from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
    from kio.schema.metadata.v12.response import MetadataResponse

_TOPIC_TYPE: Final = i8(2)
_BROKER_TYPE: Final = i8(4)
"""Kafka's ConfigResource.Type."""
_SET: Final = i8(0)
_DELETE: Final = i8(1)


class ConfigClient:
    """The configs of topics and brokers at the server of a QuotaClient."""

    def __init__(self, client: QuotaClient, cluster: ClusterAccess, pauses: Sequence[float] = PAUSES) -> None:
        self._client: Final = client
        self._cluster: Final = cluster
        self._pauses: Final = tuple(pauses)

    async def report(self) -> ConfigReport | None:
        """The quotas of all topics and brokers; None from a server that is no proxy."""
        resource = DescribeConfigsResource(
            resource_type=_TOPIC_TYPE,
            resource_name=DEFAULT_RESOURCE,
            configuration_keys=(config_resources.LAYERS,),
        )
        request = DescribeConfigsRequest(resources=(resource,))
        response = await ask_again(
            lambda: self._client.ask(request, DescribeConfigsResponse),
            lambda response: response.results[0].error_code if response.results else ErrorCode.none,
            self._pauses,
        )
        # A plain broker rejects the name. It has shown its client quotas before, so no right is missing.
        found = [config.value for result in response.results for config in result.configs]
        return decode_report(found[0]) if found and found[0] is not None else None

    async def alter(
        self, entries: Sequence[EntityAlteration], *, validate_only: bool = False
    ) -> AsyncIterator[tuple[int, list[RejectedAlteration]]]:
        """Send the alterations, as QuotaClient.alter() does."""
        settled = 0
        nodes = [entry for entry in entries if _node_id(entry.entity) is not None]
        others = [entry for entry in entries if _node_id(entry.entity) is None]
        for start in range(0, len(others), MAX_ENTITIES):
            batch = others[start : start + MAX_ENTITIES]
            rejections = await self._alter(self._client, batch, validate_only)
            settled += len(batch)
            yield settled, rejections
        addresses = await self._addresses() if nodes else {}
        for entry in nodes:
            rejections = await self._alter_broker(entry, addresses, validate_only)
            settled += 1
            yield settled, rejections

    async def _alter_broker(
        self, entry: EntityAlteration, addresses: dict[int, tuple[str, int]], validate_only: bool
    ) -> list[RejectedAlteration]:
        """Send the alteration of a broker to that broker: others reject it."""
        node_id = _node_id(entry.entity)
        address = None if node_id is None else addresses.get(node_id)
        if address is None:
            running = ", ".join(map(str, sorted(addresses))) or "none"
            return [RejectedAlteration(entry.entity, f"no such broker runs; running brokers: {running}")]
        at_broker = ClusterAccess((address,), self._cluster.connect_seconds, self._cluster.access)
        try:
            async with QuotaClient(at_broker, pauses=self._pauses) as client:
                return await self._alter(client, [entry], validate_only)
        except UpstreamUnavailable as error:
            return [RejectedAlteration(entry.entity, str(error))]

    async def missing(self, entity: Entity) -> str:
        """A sentence if the cluster does not have the topic or the broker; otherwise empty."""
        kind, name = entity[0]
        if name is None:
            return ""
        if kind == BROKER:
            brokers = await self._addresses()
            listed = ", ".join(map(str, sorted(brokers))) or "none"
            return "" if int(name) in brokers else f"the cluster has no broker {name}; its brokers: {listed}"
        [topic] = (await self._metadata(name)).topics
        unknown = topic.error_code in (
            ErrorCode.unknown_topic_or_partition,
            ErrorCode.invalid_topic_exception,
        )
        return f"the topic {show_name(name)} does not exist" if unknown else ""

    async def _addresses(self) -> dict[int, tuple[str, int]]:
        """The addresses of the brokers, by node id."""
        response = await self._metadata()
        return {int(broker.node_id): (broker.host, int(broker.port)) for broker in response.brokers}

    async def _metadata(self, *topics: str) -> "MetadataResponse":
        from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
        from kio.schema.metadata.v12.response import MetadataResponse
        from kio.schema.types import TopicName

        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in topics),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        return await self._client.ask(request, MetadataResponse)

    async def _alter(
        self, client: QuotaClient, batch: Sequence[EntityAlteration], validate_only: bool
    ) -> list[RejectedAlteration]:
        """Send one batch; again those entries whose errors are retriable. Return the rejected ones."""
        from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse

        entities = {_resource(entry.entity): entry.entity for entry in batch}

        async def send(entries: Iterable[EntityAlteration]) -> list[AlterationResult]:
            response = await client.ask(_request(entries, validate_only), IncrementalAlterConfigsResponse)
            return [
                AlterationResult(entities[key], result.error_code, result.error_message)
                for result in response.responses
                if (key := (i8(result.resource_type), result.resource_name)) in entities
            ]

        return await alter_again(
            batch, send, lambda _, result: reason(result.code, result.message), self._pauses
        )


def _node_id(entity: Entity) -> int | None:
    """The node id of a broker; None for another entity."""
    kind, name = entity[0]
    return int(name) if kind == BROKER and name is not None else None


def _resource(entity: Entity) -> tuple[i8, str]:
    """Type and name as in Kafka's messages, where the default broker has an empty name."""
    kind, name = entity[0]
    if kind == TOPIC:
        return _TOPIC_TYPE, DEFAULT_RESOURCE if name is None else name
    return _BROKER_TYPE, name or ""


def _request(entries: Iterable[EntityAlteration], validate_only: bool) -> "IncrementalAlterConfigsRequest":
    from kio.schema.incremental_alter_configs.v1.request import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    resources = []
    for entry in entries:
        kind, name = _resource(entry.entity)
        configs = tuple(
            AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
            for key, value in _ops(entry)
        )
        resources.append(AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs))
    return IncrementalAlterConfigsRequest(resources=tuple(resources), validate_only=validate_only)


def _ops(entry: EntityAlteration) -> Iterator[tuple[str, str | None]]:
    for key, value in entry.values.items():
        if key == EXPIRES_AT_MS:
            yield config_resources.EXPIRES_AT_MS, None if value is None else str(int(value))
        else:
            yield key, None if value is None else str(value)
    if entry.back_to_file:
        yield config_resources.BACK_TO_FILE, "true"
