"""A broker for tests of intercepted config APIs: it records requests and responds to them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.admin.broker import Broker
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.partitions import Partitions
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.reader import Reader
from tests.support.admin.rights import FixedRights
from tests.support.messages.configs import ALTER, DESCRIBE, INCREMENTAL, Resource
from tests.support.messages.kio_messages import read_frame, request_type, response_type
from tests.support.messages.mutations import NO_TIME, payload_of, topic_id
from tests.support.messages.requests import build, part

Respond = Callable[[Any], Any]


class Counts(PartitionCounts):
    """Knows the topics of the broker."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        super().__init__(lambda node_id: None, 1.0)
        self._topics: Final = topics

    async def topics(self, node_id: int, keys: Any) -> Any:
        found = {name: self._topics[name] for name in keys if name in self._topics}
        return {name: Partitions(count, topic_id(name).bytes) for name, count in found.items()}


class FakeBroker:
    """Broker 1, with the topics t and u, each with retention.ms. It rejects what `rejects` names."""

    def __init__(self, rejects: Mapping[Resource, ErrorCode] | None = None, may: bool = True) -> None:
        self.rights = FixedRights(may)
        self.asked: list[Any] = []
        """The requests, as types of kio."""
        self.frames: list[bytes] = []
        self.respond: Respond | None = None
        self._rejects: Final = rejects or {}

    def broker(self) -> Broker:
        return Broker("cluster", 1, Counts({"t": 1, "u": 1}), self.ask, self.rights)

    async def ask(self, frame: bytes) -> bytes:
        header = read_request_header(Reader([frame], LENGTH_SIZE))
        request = read_frame(request_type(header.api_key, header.api_version), frame)
        self.asked.append(request)
        self.frames.append(frame)
        made = (
            self.respond
            or {DESCRIBE: self._described, ALTER: self._altered, INCREMENTAL: self._altered}[header.api_key]
        )
        return payload_of(made(request), header.correlation_id)

    def _code(self, resource: Any) -> ErrorCode:
        key = (int(resource.resource_type), str(resource.resource_name))
        return self._rejects.get(key, ErrorCode.none)

    def _altered(self, request: Any) -> Any:
        schema = response_type(int(request.__api_key__), int(request.__version__))
        responses = tuple(
            part(
                schema,
                "AlterConfigsResourceResponse",
                error_code=self._code(resource),
                error_message=None if self._code(resource) == ErrorCode.none else "because",
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        )
        return build(schema, throttle_time=NO_TIME, responses=responses)

    def _described(self, request: Any) -> Any:
        schema = response_type(DESCRIBE, int(request.__version__))
        results = []
        for resource in request.resources:
            code = self._code(resource)
            configs = [
                part(
                    schema,
                    "DescribeConfigsResourceResult",
                    name=name,
                    value=value,
                    read_only=False,
                    is_default=True,
                    config_source=5,
                    is_sensitive=False,
                    synonyms=(),
                    config_type=7,
                    documentation="Kafka's.",
                )
                for name, value in (("retention.ms", "5"), ("leader.replication.throttled.replicas", ""))
                if not resource.configuration_keys or name in resource.configuration_keys
            ]
            results.append(
                part(
                    schema,
                    "DescribeConfigsResult",
                    error_code=code,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=tuple(configs) if code == ErrorCode.none else (),
                )
            )
        return build(schema, throttle_time=NO_TIME, results=tuple(results))
