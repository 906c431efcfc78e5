"""DescribeConfigs (32), v0-4, read resource by resource.

v1 config_source in place of is_default, and synonyms; v3 config_type and documentation; v4 flexible. A config
keeps the bytes that it arrived as, unknown tagged fields included.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.admin.messages.config_resources import (
    ResourceKey,
    check_number,
    read_key,
    read_result_head,
    write_response_head,
    write_result_head,
)
from proxy.admin.messages.fields import (
    frame,
    open_request,
    open_response,
    skip_tags,
    write_nullable,
    write_tags,
)
from proxy.admin.yielder import Yielder
from proxy.quota.limits.resources import BOOLEAN, LIST, LONG, STRING
from proxy.wire import api_keys
from proxy.wire.apis.api import RequestHeader
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.edit import count, string
from proxy.wire.reader import Reader

DESCRIBE_CONFIGS: Final = InterceptedApi(api_keys.DESCRIBE_CONFIGS, newest=4, flexible_from=4)

TOPIC_CONFIG: Final = 1
DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
DEFAULT_CONFIG: Final = 5
"""Kafka's DescribeConfigsResponse.ConfigSource."""
_TYPES: Final = {BOOLEAN: 1, STRING: 2, LONG: 5, LIST: 7}
"""Kafka's DescribeConfigsResponse.ConfigType."""


@dataclass(frozen=True, slots=True)
class DescribedResource:
    """A resource in a request, with its bytes."""

    key: ResourceKey
    names: frozenset[str] | None
    """The requested configs; None for all."""
    part: bytes


@dataclass(frozen=True, slots=True)
class DescribeRequest:
    """A request, read resource by resource."""

    version: int
    flexible: bool
    correlation_id: int
    resources: tuple[DescribedResource, ...]
    synonyms: bool
    documentation: bool
    payload: bytes
    """Header and body."""
    head: bytes
    """The bytes before the number of resources."""
    tail: bytes
    """The bytes after the resources."""

    def frame(self, resources: Sequence[DescribedResource]) -> bytes:
        """Return the frame of the request with these of its resources only."""
        if len(resources) == len(self.resources):
            return frame([self.payload])
        parts = [resource.part for resource in resources]
        return frame([self.head, count(len(parts), self.flexible), *parts, self.tail])


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config of the proxy in a response."""

    name: str
    value: str | None
    source: int
    type: str
    """LONG, BOOLEAN, LIST or STRING."""
    documentation: str
    synonyms: tuple[tuple[str | None, int], ...]
    """Its values with their sources; the first one is in force."""

    @property
    def is_default(self) -> bool:
        """Whether the value is the config's default."""
        return self.source == DEFAULT_CONFIG


@dataclass(frozen=True, slots=True)
class DescribeResult:
    """A resource in a response, with its bytes."""

    key: ResourceKey
    error_code: int
    configs: list[tuple[str, bytes]]
    """The name and the bytes of each config."""
    head: bytes
    """The bytes before the number of configs."""
    tail: bytes
    """The bytes after the configs."""


MAX_DESCRIBED: Final = 100_000
"""Resources of one request: as many as a large cluster has topics."""


async def read_describe_request(header: RequestHeader, payload: bytes, yielder: Yielder) -> DescribeRequest:
    """Read a request from its header and body. Raises Malformed."""
    version = header.api_version
    flexible = version >= DESCRIBE_CONFIGS.flexible_from
    reader = open_request(header, payload, flexible)
    head_end = reader.offset
    resources: list[DescribedResource] = []
    number = reader.count(flexible)
    check_number(number, MAX_DESCRIBED, "resources")
    for _ in range(number):
        start = reader.offset
        key = read_key(reader, flexible)
        names: list[str] = []
        for _ in range(reader.count(flexible)):
            names.append(reader.string(flexible))
            await yielder.step()
        skip_tags(reader, flexible)
        part = payload[start : reader.offset]
        # Brokers treat an empty list of names like null: all configs.
        resources.append(DescribedResource(key, frozenset(names) if names else None, part))
        await yielder.step()
    tail = reader.offset
    synonyms = version >= 1 and reader.u8() != 0
    documentation = version >= 3 and reader.u8() != 0
    return DescribeRequest(
        version=version,
        flexible=flexible,
        correlation_id=header.correlation_id,
        resources=tuple(resources),
        synonyms=synonyms,
        documentation=documentation,
        payload=payload,
        head=payload[:head_end],
        tail=payload[tail:],
    )


async def read_describe_response(
    request: DescribeRequest, payload: bytes, yielder: Yielder
) -> tuple[list[DescribeResult], int]:
    """Read the broker's response from its header and body: the results, and throttle_time_ms.

    Raises Malformed.
    """
    flexible = request.flexible
    reader = open_response(payload, flexible)
    throttle_time_ms = reader.i32()
    results: list[DescribeResult] = []
    for _ in range(reader.count(flexible)):
        await yielder.step()
        start = reader.offset
        error_code, key = read_result_head(reader, flexible)
        head = payload[start : reader.offset]
        configs: list[tuple[str, bytes]] = []
        for _ in range(reader.count(flexible)):
            at = reader.offset
            name = _skip_config(reader, request.version, flexible)
            configs.append((name, payload[at : reader.offset]))
            await yielder.step()
        end = reader.offset
        skip_tags(reader, flexible)
        results.append(DescribeResult(key, error_code, configs, head, payload[end : reader.offset]))
    return results, throttle_time_ms


def _skip_config(reader: Reader, version: int, flexible: bool) -> str:
    """Skip a config in a response; return its name."""
    name = reader.string(flexible)
    reader.skip_string(flexible)  # value
    reader.take(3)  # read_only, is_default or config_source, is_sensitive
    if version >= 1:
        for _ in range(reader.count(flexible)):
            reader.skip_string(flexible)  # name
            reader.skip_string(flexible)  # value
            reader.take(1)  # source
            skip_tags(reader, flexible)
    if version >= 3:
        reader.take(1)  # config_type
        reader.skip_string(flexible)  # documentation
    skip_tags(reader, flexible)
    return name


def write_entry(request: DescribeRequest, entry: ConfigEntry) -> bytes:
    """Encode a config in the version of the request. It is neither read-only nor sensitive."""
    version, flexible = request.version, request.flexible
    source = entry.source if version >= 1 else int(entry.is_default)
    pieces = [string(entry.name, flexible), write_nullable(entry.value, flexible), bytes([0, source, 0])]
    if version >= 1:
        synonyms = entry.synonyms if request.synonyms else ()
        pieces.append(count(len(synonyms), flexible))
        for value, of in synonyms:
            pieces += [string(entry.name, flexible), write_nullable(value, flexible), bytes([of])]
            pieces.append(write_tags(flexible))
    if version >= 3:
        documentation = entry.documentation if request.documentation else None
        pieces += [bytes([_TYPES[entry.type]]), write_nullable(documentation, flexible)]
    pieces.append(write_tags(flexible))
    return b"".join(pieces)


def add_configs(request: DescribeRequest, result: DescribeResult, entries: Iterable[ConfigEntry]) -> None:
    """Add configs to a result, as merge_configs() does."""
    result.configs[:] = merge_configs(result.configs, entries, lambda entry: write_entry(request, entry))


def merge_configs(
    kafka: list[tuple[str, bytes]], entries: Iterable[ConfigEntry], write: Callable[[ConfigEntry], bytes]
) -> list[tuple[str, bytes]]:
    """Return the broker's configs and the proxy's, by name and bytes.

    A config of the proxy replaces one of the broker, except that a default of the proxy does not.
    """
    names = {name for name, _ in kafka}
    own = {entry.name: write(entry) for entry in entries if not (entry.is_default and entry.name in names)}
    return [config for config in kafka if config[0] not in own] + list(own.items())


def local_result(
    request: DescribeRequest, key: ResourceKey, error_code: int = 0, message: str | None = None
) -> DescribeResult:
    """Return a result without configs, for a resource that no broker has."""
    head = write_result_head(key, error_code, message, request.flexible)
    return DescribeResult(key, error_code, [], head, write_tags(request.flexible))


def write_describe_response(
    request: DescribeRequest, results: Sequence[DescribeResult], throttle_time_ms: int
) -> bytes:
    """Return the frame of the response to a request."""
    flexible = request.flexible
    head = write_response_head(request.correlation_id, throttle_time_ms, flexible)
    pieces = [head, count(len(results), flexible)]
    for result in results:
        configs = [part for _, part in result.configs]
        pieces += [result.head, count(len(configs), flexible), *configs, result.tail]
    pieces.append(write_tags(flexible))
    return frame(pieces)
