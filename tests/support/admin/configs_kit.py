"""The intercepted config APIs in front of a fake broker, and the resources of their tests."""

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from proxy.admin.configs.alter import AlterConfigs
from proxy.admin.configs.describe import DescribeConfigs
from proxy.admin.configs.store import ConfigsStore
from proxy.quota.config_rules import ConfigRules
from proxy.quota.limits.resources import DEFAULT_RESOURCE, ConfigResource
from tests.support.admin.configs_broker import FakeBroker
from tests.support.messages.configs import (
    BROKER,
    DESCRIBE,
    TOPIC,
    Resource,
    Results,
    Shown,
    alter_request,
    describe_request,
    described,
    incremental_request,
    results,
)
from tests.support.messages.kio_messages import read_frame, request_frame, response_type
from tests.support.messages.mutations import intercepted
from tests.support.quotas.config_rules import CONFIG_RULES
from tests.support.quotas.memory_store import Wall, memory_store

T, U, DEFAULT_TOPIC = (TOPIC, "t"), (TOPIC, "u"), (TOPIC, DEFAULT_RESOURCE)
BROKER_1, DEFAULT_BROKER, LOGGER = (BROKER, "1"), (BROKER, ""), (8, "1")
RATE, REPLICAS, PART = (
    "producer.byte.rate",
    "leader.replication.throttled.replicas",
    "bytes.in.per.sec.threshold",
)
TOTAL, FLAG, ACTION = (
    "total.bytes.in.per.sec.threshold",
    "leader.replication.throttled",
    "producer.byte.rate.action",
)
THEIRS, EXPIRES = "retention.ms", "expires.at.ms"
WALL_MS = Wall().ms
NONE, INVALID_CONFIG, INVALID_REQUEST = ErrorCode.none, ErrorCode.invalid_config, ErrorCode.invalid_request
REJECTED = ErrorCode.topic_authorization_failed


class Kit:
    """The config APIs in front of a broker, with a store in memory."""

    def __init__(
        self,
        file: dict[ConfigResource, dict[str, str]] | None = None,
        rejects: dict[Resource, ErrorCode] | None = None,
        rules: ConfigRules = CONFIG_RULES,
    ) -> None:
        self.store, self.log = memory_store({}, configs=file)
        self.broker = FakeBroker(rejects)
        self.reads = True
        """Whether clients read their responses at once."""
        self._unread: list[Callable[[], None]] = []
        store = ConfigsStore(self.store)
        self._describing = DescribeConfigs(store, rules)
        self._altering = AlterConfigs(store, rules, lambda: WALL_MS)

    async def set(
        self, *resources: tuple[Resource, list[tuple[str, int, str | None]]], **more: Any
    ) -> Results:
        """Send an IncrementalAlterConfigs request; return the results."""
        return await self.alter(incremental_request(resources, **more))

    async def replace(self, *resources: tuple[Resource, dict[str, str | None]], **more: Any) -> Results:
        """Send an AlterConfigs request; return the results."""
        return await self.alter(alter_request(resources, **more))

    async def alter(self, request: Any) -> Results:
        """Send either request; return the results."""
        frame = await self._altering.answer(intercepted(request_frame(request)), self.broker.broker())
        return results(read_frame(response_type(int(request.__api_key__), int(request.__version__)), frame))

    async def describe(self, request: Any) -> Any:
        """Send a DescribeConfigs request; return the response."""
        reply = await self._describing.answer(intercepted(request_frame(request)), self.broker.broker())
        assert reply.taken is not None
        self._unread.append(reply.taken)
        if self.reads:
            self.read()
        frame = reply.frame
        return read_frame(response_type(DESCRIBE, int(request.__version__)), frame)

    def read(self) -> None:
        """Have clients read their responses."""
        while self._unread:
            self._unread.pop(0)()

    async def shown(self, resource: Resource, *names: str, **more: Any) -> dict[str, Shown]:
        [configs] = described(
            await self.describe(describe_request([(resource, names or None)], **more))
        ).values()
        assert not isinstance(configs, ErrorCode)
        return configs

    @property
    def configs(self) -> dict[str, dict[str, str]]:
        return {str(resource): values for resource, values in self.store.configs.items()}

    def asked(self) -> list[tuple[Resource, dict[str, str | None]]]:
        """The resources and configs of the last request to alter that the broker received."""
        return [
            (
                (int(resource.resource_type), resource.resource_name),
                {config.name: config.value for config in resource.configs},
            )
            for resource in self.broker.asked[-1].resources
        ]
