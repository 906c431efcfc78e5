"""Client quotas over the admin protocol (KIP-546), as a raw client sends them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kio.static.primitive import i8

from tests.support.messages.kio_messages import request_type
from tests.support.messages.requests import part

DESCRIBE: Final = 48
ALTER: Final = 49
EXACT, DEFAULT_NAME, ANY = 0, 1, 2
"""Match types of a filter."""

Entity = Mapping[str, str | None]
"""Names by type (user, client-id, ip); None is the default entity."""
Quotas = dict[frozenset[tuple[str, str | None]], dict[str, float]]
"""Each entity's quotas; the entity as a set of (type, name)."""


def alter_request(
    *entries: tuple[Sequence[tuple[str, str | None]], Sequence[tuple[str, float | None]]],
    validate_only: bool = False,
    version: int = 1,
) -> Any:
    """An AlterClientQuotas request; a value of None removes."""
    schema = request_type(ALTER, version)
    return schema(
        entries=tuple(
            part(
                schema,
                "EntryData",
                entity=tuple(
                    part(schema, "EntityData", entity_type=kind, entity_name=name) for kind, name in parts
                ),
                ops=tuple(
                    part(schema, "OpData", key=key, value=float(value or 0), remove=value is None)
                    for key, value in ops
                ),
            )
            for parts, ops in entries
        ),
        validate_only=validate_only,
    )


def describe_request(*components: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Any:
    """A DescribeClientQuotas request, with (type, match type, match) for each filter."""
    schema = request_type(DESCRIBE, version)
    return schema(
        components=tuple(
            part(schema, "ComponentData", entity_type=kind, match_type=i8(match_type), match=match)
            for kind, match_type, match in components
        ),
        strict=strict,
    )


def described(response: Any) -> Quotas:
    """The entries of a DescribeClientQuotas response."""
    return {
        frozenset((named.entity_type, named.entity_name) for named in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries
    }
