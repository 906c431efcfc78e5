"""DescribeClientQuotas (48) and AlterClientQuotas (49), v0-1; v1 flexible (KIP-546).

Read and written entry by entry, and reading gives way to other connections: a message may have thousands of
entities. Strings that are not nullable in Kafka's schema are read as nullable: the response to
null is an error.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proxy.admin.messages.fields import (
    MAX_CHANGES,
    frame,
    read_nullable,
    skip_tags,
    write_message,
    write_nullable,
    write_tags,
)
from proxy.admin.yielder import SLICE, Yielder
from proxy.wire import api_keys
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.edit import count, i16, i32, string
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader

DESCRIBE_CLIENT_QUOTAS: Final = InterceptedApi(api_keys.DESCRIBE_CLIENT_QUOTAS, newest=1, flexible_from=1)
ALTER_CLIENT_QUOTAS: Final = InterceptedApi(api_keys.ALTER_CLIENT_QUOTAS, newest=1, flexible_from=1)

MAX_COMPONENTS: Final = 4
"""Components that a filter can have: one for each type of entity, and one for `lasting`. Two of a type are an
error, so a longer filter is one in any case.
"""
EXPIRES_AT_MS: Final = "expires_at_ms"
"""Not a quota, but the key with the expiry of the entry's other keys (docs/quotas-as-code.md)."""
BACK_TO_FILE: Final = "back_to_file"
"""Not a quota, but the key with which removals of the entry return to the values of the proxy's configuration
file.
"""

Part = tuple[str | None, str | None]
"""Type and name of a part of an entity; the name is None for the default entity."""


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a DescribeClientQuotas filter."""

    type: str | None
    match_type: int
    match: str | None


@dataclass(frozen=True, slots=True)
class QuotaOp:
    """A quota to set or to remove."""

    key: str | None
    value: float
    remove: bool


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    """An entry of AlterClientQuotas."""

    parts: tuple[Part, ...]
    ops: tuple[QuotaOp, ...]


def read_describe(reader: Reader, flexible: bool) -> tuple[list[Component], bool]:
    """Read a DescribeClientQuotas request from its body: the filter, and `strict`. Raises Malformed.

    A filter with more than MAX_COMPONENTS is read only as far as its error requires.
    """
    components: list[Component] = []
    number = reader.count(flexible)
    for _ in range(min(number, MAX_COMPONENTS + 1)):
        kind = read_nullable(reader, flexible)
        match_type = reader.u8()
        components.append(Component(kind, match_type, read_nullable(reader, flexible)))
        skip_tags(reader, flexible)
    if number > MAX_COMPONENTS:
        return components, False
    strict = reader.u8() != 0
    skip_tags(reader, flexible)
    return components, strict


async def read_alterations(
    reader: Reader, flexible: bool, yielder: Yielder
) -> tuple[list[QuotaAlteration], bool]:
    """Read the entries of an AlterClientQuotas request from its body, and whether they have too many ops.

    If they have, entries lack ops. Raises Malformed, also if there are more than MAX_CHANGES entries or parts
    of entities. read_validate_only() reads the rest.
    """
    number = reader.count(flexible)
    _check_number(number, "entries")
    entries: list[QuotaAlteration] = []
    all_parts = all_ops = 0
    for _ in range(number):
        number = reader.count(flexible)
        all_parts += number
        _check_number(all_parts, "parts of entities")
        parts = tuple(_read_part(reader, flexible) for _ in range(number))
        number = reader.count(flexible)
        all_ops += number
        ops: list[QuotaOp] = []
        if all_ops > MAX_CHANGES:
            await _skip_ops(reader, flexible, number, yielder)
        else:
            for _ in range(number):
                ops.append(_read_op(reader, flexible))
                await yielder.step()
        skip_tags(reader, flexible)
        entries.append(QuotaAlteration(parts, tuple(ops)))
        await yielder.step()
    return entries, all_ops > MAX_CHANGES


def _check_number(number: int, what: str) -> None:
    if number > MAX_CHANGES:
        raise Malformed(f"an AlterClientQuotas request has {number} {what}; the proxy takes {MAX_CHANGES}")


def read_validate_only(reader: Reader, flexible: bool) -> bool:
    """Read `validate_only`, which follows the entries of an AlterClientQuotas request."""
    validate_only = reader.u8() != 0
    skip_tags(reader, flexible)
    return validate_only


def _read_part(reader: Reader, flexible: bool) -> Part:
    part = (read_nullable(reader, flexible), read_nullable(reader, flexible))
    skip_tags(reader, flexible)
    return part


def _read_op(reader: Reader, flexible: bool) -> QuotaOp:
    key = read_nullable(reader, flexible)
    at = reader.take(8)
    value: float = struct.unpack_from(">d", reader.data, at)[0]
    op = QuotaOp(key, value, reader.u8() != 0)
    skip_tags(reader, flexible)
    return op


async def _skip_ops(reader: Reader, flexible: bool, number: int, yielder: Yielder) -> None:
    for left in range(number, 0, -SLICE):
        await yielder.step()
        for _ in range(min(left, SLICE)):
            reader.skip_string(flexible)
            reader.take(9)  # value, remove
            if flexible:
                reader.skip_tags()


def write_described(parts: Sequence[Part], values: Sequence[tuple[str, float]], flexible: bool) -> bytes:
    """Encode an entry of a DescribeClientQuotas response."""
    pieces = [_write_parts(parts, flexible), count(len(values), flexible)]
    for key, value in values:
        pieces.append(string(key, flexible) + struct.pack(">d", value) + write_tags(flexible))
    pieces.append(write_tags(flexible))
    return b"".join(pieces)


def describe_response(
    correlation_id: int,
    flexible: bool,
    error_code: int,
    error_message: str | None,
    entries: list[bytes] | None,
) -> bytes:
    """Return the frame of a DescribeClientQuotas response; `entries` is None if there is an error."""
    head = _head(correlation_id, flexible) + i16(error_code) + write_message(error_message, flexible)
    number = count(-1 if entries is None else len(entries), flexible)
    return frame([head, number, *(entries or []), write_tags(flexible)])


def write_altered(parts: Sequence[Part], error_code: int, error_message: str | None, flexible: bool) -> bytes:
    """Encode an entry of an AlterClientQuotas response."""
    result = i16(error_code) + write_message(error_message, flexible)
    return result + _write_parts(parts, flexible) + write_tags(flexible)


def alter_response(correlation_id: int, flexible: bool, entries: list[bytes]) -> bytes:
    """Return the frame of an AlterClientQuotas response."""
    head = _head(correlation_id, flexible)
    return frame([head, count(len(entries), flexible), *entries, write_tags(flexible)])


def _head(correlation_id: int, flexible: bool) -> bytes:
    """Encode the header, and throttle_time_ms: no quota throttles these requests."""
    return i32(correlation_id) + write_tags(flexible) + i32(0)


def _write_parts(parts: Sequence[Part], flexible: bool) -> bytes:
    pieces = [count(len(parts), flexible)]
    for kind, name in parts:
        # The type is not nullable in a response: a null in the request is answered with an empty string.
        pieces.append(string(kind or "", flexible) + write_nullable(name, flexible) + write_tags(flexible))
    return b"".join(pieces)
