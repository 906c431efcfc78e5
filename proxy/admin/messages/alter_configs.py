"""AlterConfigs (33) and IncrementalAlterConfigs (44), taken apart by resource and put together again.

AlterConfigs               v0-2, v2 flexible; a resource's configs are all that it shall have
IncrementalAlterConfigs    v0-1, v1 flexible; a config has an operation (KIP-339)

What a message says of a config stays the bytes that it came as. The two responses are alike.
"""

from collections import deque
from collections.abc import Iterable, Sequence
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
    read_nullable,
    skip_tags,
    write_tags,
)
from proxy.admin.messages.topics import Yielder
from proxy.wire.apis import RequestHeader
from proxy.wire.edit import count
from proxy.wire.intercepted import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS, InterceptedApi
from proxy.wire.reader import Reader

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3


@dataclass(frozen=True, slots=True)
class ConfigOp:
    """One config of a resource."""

    name: str
    operation: int
    """SET in AlterConfigs."""
    value: str | None
    part: bytes


@dataclass(frozen=True, slots=True)
class Altered:
    """A resource in a request."""

    key: ResourceKey
    ops: tuple[ConfigOp, ...]
    head: bytes
    """What stands before the configs."""
    tail: bytes
    """What stands after them."""

    def part(self, ops: Sequence[ConfigOp], flexible: bool) -> bytes:
        """The resource with these of its configs."""
        return b"".join([self.head, count(len(ops), flexible), *[op.part for op in ops], self.tail])


@dataclass(frozen=True, slots=True)
class AlterRequest:
    """A request in parts."""

    replaces: bool
    """Whether a resource loses the configs that the request does not name: AlterConfigs."""
    flexible: bool
    correlation_id: int
    resources: tuple[Altered, ...]
    validate_only: bool
    payload: bytes
    """Header and body."""
    head: bytes
    """What stands before the resources."""
    tail: bytes
    """What stands after them."""

    def frame(self, resources: Sequence[bytes]) -> bytes:
        """The request with these resources, as a whole frame."""
        return frame([self.head, count(len(resources), self.flexible), *resources, self.tail])


async def read_alter_request(header: RequestHeader, payload: bytes, yielder: Yielder) -> AlterRequest:
    """A request out of its header and body. Raises Malformed."""
    incremental = header.api_key == INCREMENTAL_ALTER_CONFIGS.key
    api: InterceptedApi = INCREMENTAL_ALTER_CONFIGS if incremental else ALTER_CONFIGS
    flexible = header.api_version >= api.flexible_from
    reader = open_request(payload, flexible)
    head_end = reader.offset
    resources: list[Altered] = []
    for _ in range(reader.count(flexible)):
        start = reader.offset
        key = read_key(reader, flexible)
        head = payload[start : reader.offset]
        ops: list[ConfigOp] = []
        for _ in range(reader.count(flexible)):
            ops.append(_read_op(reader, flexible, incremental, payload))
            await yielder.step()
        end = reader.offset
        skip_tags(reader, flexible)
        resources.append(Altered(key, tuple(ops), head, payload[end : reader.offset]))
    tail = reader.offset
    validate_only = reader.u8() != 0
    return AlterRequest(
        not incremental,
        flexible,
        header.correlation_id,
        tuple(resources),
        validate_only,
        payload,
        payload[:head_end],
        payload[tail:],
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
    """What became of a resource, with the bytes that say it."""

    key: ResourceKey
    error_code: int
    part: bytes


@dataclass(frozen=True, slots=True)
class AlterResponse:
    """An answer in parts."""

    results: list[AlterResult]
    throttle_time_ms: int


async def read_alter_response(request: AlterRequest, payload: bytes, yielder: Yielder) -> AlterResponse:
    """The broker's answer out of its header and body. Raises Malformed."""
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
    """A result of the proxy's own."""
    flexible = request.flexible
    part = write_result_head(key, error_code, message, flexible) + write_tags(flexible)
    return AlterResult(key, error_code, part)


def write_alter_response(
    request: AlterRequest, results: Iterable[AlterResult], throttle_time_ms: int
) -> bytes:
    """The answer to the request as a whole frame, its results in the order of the request."""
    flexible = request.flexible
    left: dict[ResourceKey, deque[AlterResult]] = {}
    for result in results:
        left.setdefault(result.key, deque()).append(result)
    parts = [left[asked.key].popleft().part for asked in request.resources if left.get(asked.key)]
    parts += [result.part for queue in left.values() for result in queue]
    head = write_response_head(request.correlation_id, throttle_time_ms, flexible)
    return frame([head, count(len(parts), flexible), *parts, write_tags(flexible)])
