"""PartitionCounts: asks brokers, on the proxy's own connections, for the partitions of topics, and for their
own threads.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8
from kio.static.protocol import RequestPayload, ResponsePayload

from proxy.errors import UpstreamUnavailable
from proxy.security.access import PLAINTEXT, Access
from proxy.upstream.addresses import join_address
from proxy.upstream.broker_connection import BrokerConnection
from proxy.upstream.partitions import Partitions, TopicKey
from proxy.wire.cursor import NO_ID

log = logging.getLogger(__name__)
Response = TypeVar("Response", bound=ResponsePayload)
BROKER_RESOURCE: Final = i8(4)
"""Kafka's ConfigResource.Type of a broker."""
NUM_PARTITIONS: Final = "num.partitions"
AUTO_CREATE: Final = "auto.create.topics.enable"
THREADS: Final = ("num.io.threads", "num.network.threads")
"""The threads whose time request_percentage limits in Kafka."""
DEFAULT_SECONDS: Final = 60.0
"""For how long a broker's TopicDefaults are cached: changing them takes a restart of the broker."""
TOPICS_AT_A_TIME: Final = 500
"""Topics in one Metadata request, so that one response does not hold up the event loop."""


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """A broker's configs for new topics, with Kafka's defaults."""

    partitions: int = 1
    """num.partitions."""
    creates: bool = True
    """auto.create.topics.enable."""


class KeptConnection:
    """A connection to one broker, opened by the first request and kept."""

    def __init__(self, host: str, port: int, seconds: float, access: Access = PLAINTEXT) -> None:
        """`seconds` is the timeout of each request, with connecting."""
        self.address: Final = (host, port)
        self._access: Final = access
        self._seconds: Final = seconds
        self._one_at_a_time: Final = asyncio.Lock()
        self._connection: BrokerConnection | None = None

    async def ask(self, request: RequestPayload, schema: type[Response]) -> Response:
        """Send a request; again on a new connection if the old one has ended. Raises UpstreamUnavailable."""
        async with self._one_at_a_time:
            if self._connection is not None:
                with suppress(OSError, EOFError):
                    return await self._ask(request, schema)
            try:
                return await self._ask(request, schema)
            except (OSError, EOFError) as error:
                why = str(error) or type(error).__name__
                raise UpstreamUnavailable(f"{join_address(*self.address)}: {why}") from error

    async def _ask(self, request: RequestPayload, schema: type[Response]) -> Response:
        done = False
        try:
            async with asyncio.timeout(self._seconds):
                if self._connection is None:
                    self._connection = await BrokerConnection.open(*self.address, self._access)
                response = await self._connection.ask(request, schema)
            done = True
            return response
        finally:
            if not done:
                # A response that arrives later would be taken for the one to the next request.
                self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class PartitionCounts:
    """Asks the broker to which a client has sent a request."""

    def __init__(
        self,
        address: Callable[[int], tuple[str, int] | None],
        seconds: float,
        access: Access = PLAINTEXT,
    ) -> None:
        """`address` returns a broker's own host and port; `seconds` is the timeout of a request."""
        self._address: Final = address
        self._seconds: Final = seconds
        self._access: Final = access
        self._connections: Final[dict[int, KeptConnection]] = {}
        self._defaults: Final[dict[int, tuple[TopicDefaults, float]]] = {}
        """By node id: the configs, and until when they are cached."""

    async def topics(self, node_id: int, keys: Sequence[TopicKey]) -> dict[TopicKey, Partitions]:
        """Return those of these topics that the broker has. Raises UpstreamUnavailable."""
        found: dict[TopicKey, Partitions] = {}
        names = [key for key in keys if isinstance(key, str)]
        ids = [key for key in keys if isinstance(key, bytes)]
        wanted = [MetadataRequestTopic(name=TopicName(name), topic_id=None) for name in names]
        for topic in await self._metadata(node_id, wanted):
            found[str(topic.name)] = _partitions(topic)
        wanted = [MetadataRequestTopic(name=None, topic_id=UUID(bytes=topic_id)) for topic_id in ids]
        for topic in await self._metadata(node_id, wanted):
            partitions = _partitions(topic)
            found[partitions.topic_id] = partitions
        return found

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> dict[str, bytes | None]:
        """Return each topic's id, None for one that does not exist; omit topics with other errors.

        Raises UpstreamUnavailable.
        """
        wanted = [MetadataRequestTopic(name=TopicName(name), topic_id=None) for name in names]
        ids: dict[str, bytes | None] = {}
        for topic in await self._all_metadata(node_id, wanted):
            if topic.error_code == ErrorCode.unknown_topic_or_partition:
                ids[str(topic.name)] = None
            elif topic.error_code == ErrorCode.none and topic.topic_id is not None:
                ids[str(topic.name)] = topic.topic_id.bytes
        return ids

    async def _metadata(
        self, node_id: int, wanted: Sequence[MetadataRequestTopic]
    ) -> list[MetadataResponseTopic]:
        """Return the topics without an error."""
        return [topic for topic in await self._all_metadata(node_id, wanted) if topic.error_code == 0]

    async def _all_metadata(
        self, node_id: int, wanted: Sequence[MetadataRequestTopic]
    ) -> list[MetadataResponseTopic]:
        topics: list[MetadataResponseTopic] = []
        for start in range(0, len(wanted), TOPICS_AT_A_TIME):
            request = MetadataRequest(
                topics=tuple(wanted[start : start + TOPICS_AT_A_TIME]),
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=False,
            )
            response = await self._connection(node_id).ask(request, MetadataResponse)
            topics += response.topics
        return topics

    async def default(self, node_id: int, now: float) -> TopicDefaults:
        """Return the broker's configs for new topics, or Kafka's defaults if the broker does not describe
        them.

        The controller's num.partitions counts, but clients cannot ask the controller; all brokers are assumed
        to have it.
        """
        defaults, known_until = self._defaults.get(node_id, (TopicDefaults(), 0.0))
        if now < known_until:
            return defaults
        try:
            defaults = await self._topic_defaults(node_id)
        except UpstreamUnavailable as error:
            log.warning(
                "broker %d: cannot describe num.partitions (assuming %d) and auto.create.topics.enable "
                "(assuming %s): %s",
                node_id,
                defaults.partitions,
                str(defaults.creates).lower(),
                error,
            )
        self._defaults[node_id] = (defaults, now + DEFAULT_SECONDS)
        return defaults

    async def _topic_defaults(self, node_id: int) -> TopicDefaults:
        """Request the broker's configs for new topics. Raises UpstreamUnavailable."""
        values = await self._described(node_id, (NUM_PARTITIONS, AUTO_CREATE))
        return TopicDefaults(int(values[NUM_PARTITIONS]), values.get(AUTO_CREATE) != "false")

    async def threads(self, node_id: int) -> int:
        """Return how many threads of the broker work on requests. Raises UpstreamUnavailable."""
        values = await self._described(node_id, THREADS)
        return sum(int(values.get(name, "0")) for name in THREADS)

    async def _described(self, node_id: int, names: tuple[str, ...]) -> dict[str, str]:
        """Request these configs of the broker. Raises UpstreamUnavailable if the first has no value."""
        # Imported here: most proxies do not need it.
        from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
        from kio.schema.describe_configs.v4.response import DescribeConfigsResponse

        resource = DescribeConfigsResource(
            resource_type=BROKER_RESOURCE,
            resource_name=str(node_id),
            configuration_keys=names,
        )
        response = await self._connection(node_id).ask(
            DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse
        )
        configs = [config for result in response.results for config in result.configs]
        values = {config.name: config.value for config in configs if config.value}
        if names[0] in values:
            return values
        why = [result.error_message or result.error_code.name for result in response.results]
        raise UpstreamUnavailable(", ".join(why) or "the response has no value")

    def _connection(self, node_id: int) -> KeptConnection:
        address = self._address(node_id)
        if address is None:
            raise UpstreamUnavailable(f"broker {node_id} is not known")
        connection = self._connections.get(node_id)
        if connection is None or connection.address != address:
            if connection is not None:
                connection.close()
            connection = KeptConnection(*address, self._seconds, self._access)
            self._connections[node_id] = connection
        return connection

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


def _partitions(topic: MetadataResponseTopic) -> Partitions:
    return Partitions(len(topic.partitions), topic.topic_id.bytes if topic.topic_id else NO_ID)
