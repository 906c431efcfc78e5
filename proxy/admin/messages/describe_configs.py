"""DescribeConfigs (32), v0-4, taken apart by resource and put together again.

v1 sources instead of is_default, and synonyms; v3 types and documentation; v4 flexible. What a message says
of a config stays the bytes that it came as.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.admin.messages.config_resources import (
    ResourceKey,
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
from proxy.admin.messages.topics import Yielder
from proxy.quota.limits.resources import BOOLEAN, LIST, LONG, STRING
from proxy.wire.apis import RequestHeader
from proxy.wire.edit import count, string
from proxy.wire.intercepted import DESCRIBE_CONFIGS
from proxy.wire.reader import Reader

TOPIC_CONFIG: Final = 1
DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
DEFAULT_CONFIG: Final = 5
"""Kafka's DescribeConfigsResponse.ConfigSource."""
_TYPES: Final = {BOOLEAN: 1, STRING: 2, LONG: 5, LIST: 7}
"""Kafka's DescribeConfigsResponse.ConfigType."""


@dataclass(frozen=True, slots=True)
class Described:
    """A resource in a request."""

    key: ResourceKey
    names: frozenset[str] | None
    """The configs that are asked for; None for all."""
    part: bytes


@dataclass(frozen=True, slots=True)
class DescribeRequest:
    """A request in parts."""

    version: int
    flexible: bool
    correlation_id: int
    resources: tuple[Described, ...]
    synonyms: bool
    documentation: bool
    payload: bytes
    """Header and body."""
    head: bytes
    """What stands before the resources."""
    tail: bytes
    """What stands after them."""

    def frame(self, resources: Sequence[Described]) -> bytes:
        """The request with these resources, as a whole frame."""
        if len(resources) == len(self.resources):
            return frame([self.payload])
        parts = [resource.part for resource in resources]
        return frame([self.head, count(len(parts), self.flexible), *parts, self.tail])


@dataclass(frozen=True, slots=True)
class Entry:
    """A config of the proxy's own in an answer."""

    name: str
    value: str | None
    source: int
    type: str
    """LONG, BOOLEAN, LIST or STRING."""
    documentation: str
    synonyms: tuple[tuple[str | None, int], ...]
    """Every value that it has, with its source, that which holds first."""

    @property
    def is_default(self) -> bool:
        """Whether nobody has configured it."""
        return self.source == DEFAULT_CONFIG


@dataclass(frozen=True, slots=True)
class DescribeResult:
    """A resource in an answer, with the bytes that say it."""

    key: ResourceKey
    error_code: int
    configs: list[tuple[str, bytes]]
    """Names, and the bytes that say them."""
    head: bytes
    """What stands before the configs."""
    tail: bytes
    """What stands after them."""


async def read_describe_request(header: RequestHeader, payload: bytes, yielder: Yielder) -> DescribeRequest:
    """A request out of its header and body. Raises Malformed."""
    version = header.api_version
    flexible = version >= DESCRIBE_CONFIGS.flexible_from
    reader = open_request(payload, flexible)
    head_end = reader.offset
    resources: list[Described] = []
    for _ in range(reader.count(flexible)):
        start = reader.offset
        key = read_key(reader, flexible)
        names: list[str] = []
        for _ in range(reader.count(flexible)):
            names.append(reader.string(flexible))
            await yielder.step()
        skip_tags(reader, flexible)
        part = payload[start : reader.offset]
        # Brokers take an empty list of names for all, as they do null.
        resources.append(Described(key, frozenset(names) if names else None, part))
        await yielder.step()
    tail = reader.offset
    synonyms = version >= 1 and reader.u8() != 0
    documentation = version >= 3 and reader.u8() != 0
    return DescribeRequest(
        version,
        flexible,
        header.correlation_id,
        tuple(resources),
        synonyms,
        documentation,
        payload,
        payload[:head_end],
        payload[tail:],
    )


async def read_describe_response(
    request: DescribeRequest, payload: bytes, yielder: Yielder
) -> tuple[list[DescribeResult], int]:
    """The results of the broker's answer, out of its header and body, and throttle_time_ms. Raises
    Malformed.
    """
    flexible = request.flexible
    reader = open_response(payload, flexible)
    throttle_time_ms = reader.i32()
    results: list[DescribeResult] = []
    for _ in range(reader.count(flexible)):
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
    """Step over a config; its name."""
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


def write_entry(request: DescribeRequest, entry: Entry) -> bytes:
    """A config as the version of the request has it. It is never read-only, nor sensitive."""
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


def add_entries(request: DescribeRequest, result: DescribeResult, entries: Iterable[Entry]) -> None:
    """Put these beside the broker's, or in their place; a default only where the broker has none."""
    result.configs[:] = beside(result.configs, entries, lambda entry: write_entry(request, entry))


def beside(
    theirs: list[tuple[str, bytes]], entries: Iterable[Entry], write: Callable[[Entry], bytes]
) -> list[tuple[str, bytes]]:
    """The broker's configs and ours, by name and bytes, as add_entries() puts them together."""
    names = {name for name, _ in theirs}
    ours = {entry.name: write(entry) for entry in entries if not (entry.is_default and entry.name in names)}
    return [config for config in theirs if config[0] not in ours] + list(ours.items())


def own_result(
    request: DescribeRequest, key: ResourceKey, error_code: int = 0, message: str | None = None
) -> DescribeResult:
    """A resource, without configs, that no broker knows."""
    head = write_result_head(key, error_code, message, request.flexible)
    return DescribeResult(key, error_code, [], head, write_tags(request.flexible))


def write_describe_response(
    request: DescribeRequest, results: Sequence[DescribeResult], throttle_time_ms: int
) -> bytes:
    """The answer to the request as a whole frame."""
    flexible = request.flexible
    head = write_response_head(request.correlation_id, throttle_time_ms, flexible)
    pieces = [head, count(len(results), flexible)]
    for result in results:
        configs = [part for _, part in result.configs]
        pieces += [result.head, count(len(configs), flexible), *configs, result.tail]
    pieces.append(write_tags(flexible))
    return frame(pieces)
