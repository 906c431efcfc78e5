"""AlterConfigs (33) and IncrementalAlterConfigs (44), read resource by resource.

AlterConfigs               v0-2, v2 flexible; replaces all configs of a resource
IncrementalAlterConfigs    v0-1, v1 flexible; each config has an operation (KIP-339)

A config keeps the bytes that it arrived as, unknown tagged fields included. The responses have the same form.
"""

from collections import deque
from collections.abc import Sequence
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
    MAX_CHANGES,
    frame,
    open_request,
    open_response,
    read_nullable,
    skip_tags,
    write_tags,
)
from proxy.admin.yielder import Yielder
from proxy.wire import api_keys
from proxy.wire.apis.api import RequestHeader
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.edit import count
from proxy.wire.reader import Reader

ALTER_CONFIGS: Final = InterceptedApi(api_keys.ALTER_CONFIGS, newest=2, flexible_from=2)
INCREMENTAL_ALTER_CONFIGS: Final = InterceptedApi(
    api_keys.INCREMENTAL_ALTER_CONFIGS, newest=1, flexible_from=1
)

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
"""Kafka's AlterConfigOp.OpType."""


@dataclass(frozen=True, slots=True)
class ConfigOp:
    """A config of a resource, with its bytes."""

    name: str
    operation: int
    """In AlterConfigs always SET."""
    value: str | None
    part: bytes


@dataclass(frozen=True, slots=True)
class AlteredResource:
    """A resource in a request."""

    key: ResourceKey
    ops: tuple[ConfigOp, ...]
    head: bytes
    """The bytes before the number of configs."""
    tail: bytes
    """The bytes after the configs."""

    def part(self, ops: Sequence[ConfigOp], flexible: bool) -> bytes:
        """Encode the resource with these of its configs."""
        return b"".join([self.head, count(len(ops), flexible), *[op.part for op in ops], self.tail])


@dataclass(frozen=True, slots=True)
class AlterRequest:
    """A request, read resource by resource."""

    replaces: bool
    """Whether it removes the configs that it does not name: AlterConfigs."""
    flexible: bool
    correlation_id: int
    resources: list[AlteredResource]
    validate_only: bool
    payload: bytes
    """Header and body."""
    head: bytes
    """The bytes before the number of resources."""
    tail: bytes
    """The bytes after the resources."""

    def frame(self, resources: Sequence[bytes]) -> bytes:
        """Return the frame of the request with these encoded resources."""
        return frame([self.head, count(len(resources), self.flexible), *resources, self.tail])


async def read_alter_request(header: RequestHeader, payload: bytes, yielder: Yielder) -> AlterRequest:
    """Read a request from its header and body. Raises Malformed, also for more than MAX_CHANGES."""
    incremental = header.api_key == INCREMENTAL_ALTER_CONFIGS.key
    api = INCREMENTAL_ALTER_CONFIGS if incremental else ALTER_CONFIGS
    flexible = header.api_version >= api.flexible_from
    reader = open_request(header, payload, flexible)
    head_end = reader.offset
    resources: list[AlteredResource] = []
    number = reader.count(flexible)
    check_number(number, MAX_CHANGES, "resources")
    configs = 0
    for _ in range(number):
        start = reader.offset
        key = read_key(reader, flexible)
        head = payload[start : reader.offset]
        ops: list[ConfigOp] = []
        number = reader.count(flexible)
        configs += number
        check_number(configs, MAX_CHANGES, "configs")
        for _ in range(number):
            ops.append(_read_op(reader, flexible, incremental, payload))
            await yielder.step()
        end = reader.offset
        skip_tags(reader, flexible)
        resources.append(AlteredResource(key, tuple(ops), head, payload[end : reader.offset]))
        await yielder.step()
    tail = reader.offset
    validate_only = reader.u8() != 0
    return AlterRequest(
        replaces=not incremental,
        flexible=flexible,
        correlation_id=header.correlation_id,
        resources=resources,
        validate_only=validate_only,
        payload=payload,
        head=payload[:head_end],
        tail=payload[tail:],
    )


def _read_op(reader: Reader, flexible: bool, incremental: bool, payload: bytes) -> ConfigOp:
    start = reader.offset
    name = reader.string(flexible)
    operation = reader.u8() if incremental else SET
    value = read_nullable(reader, flexible)
    skip_tags(reader, flexible)
    return ConfigOp(name, operation, value, payload[start : reader.offset])


@dataclass(frozen=True, slots=True)
class AlterResult:
    """A resource in a response, with its bytes."""

    key: ResourceKey
    error_code: int
    part: bytes


@dataclass(frozen=True, slots=True)
class AlterResponse:
    """A response, read resource by resource."""

    results: list[AlterResult]
    throttle_time_ms: int


async def read_alter_response(request: AlterRequest, payload: bytes, yielder: Yielder) -> AlterResponse:
    """Read the broker's response from its header and body. Raises Malformed."""
    flexible = request.flexible
    reader = open_response(payload, flexible)
    throttle_time_ms = reader.i32()
    results: list[AlterResult] = []
    for _ in range(reader.count(flexible)):
        start = reader.offset
        error_code, key = read_result_head(reader, flexible)
        skip_tags(reader, flexible)
        results.append(AlterResult(key, error_code, payload[start : reader.offset]))
        await yielder.step()
    return AlterResponse(results, throttle_time_ms)


def write_result(
    request: AlterRequest, key: ResourceKey, error_code: int, message: str | None
) -> AlterResult:
    """Return a result of the proxy."""
    flexible = request.flexible
    part = write_result_head(key, error_code, message, flexible) + write_tags(flexible)
    return AlterResult(key, error_code, part)


async def write_alter_response(
    request: AlterRequest, results: Sequence[AlterResult], throttle_time_ms: int, yielder: Yielder
) -> bytes:
    """Return the frame of the response to a request, the results in the order of its resources."""
    flexible = request.flexible
    left: dict[ResourceKey, deque[AlterResult]] = {}
    async for some in yielder.slices(results):
        for result in some:
            left.setdefault(result.key, deque()).append(result)
    parts: list[bytes] = []
    async for asked in yielder.slices(request.resources):
        parts += [left[resource.key].popleft().part for resource in asked if left.get(resource.key)]
    async for queues in yielder.slices(list(left.values())):
        parts += [result.part for queue in queues for result in queue]
    head = write_response_head(request.correlation_id, throttle_time_ms, flexible)
    return frame([head, count(len(parts), flexible), *parts, write_tags(flexible)])
