"""What a resource's configs become by a request, and how they are described: Kafka's own rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.client_quotas import LAST_TIME_MS
from proxy.admin.messages.alter_configs import APPEND, DELETE, SET, SUBTRACT, ConfigOp
from proxy.admin.messages.config_resources import ResourceKey
from proxy.admin.messages.describe_configs import (
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    TOPIC_CONFIG,
    Entry,
)
from proxy.admin.rejected import RequestRejected
from proxy.quota.limits.resources import (
    BROKER,
    DEFAULT_RESOURCE,
    LIST,
    TOPIC,
    ConfigKey,
    ConfigResource,
    split_list,
)

TOPIC_TYPE: Final = 2
BROKER_TYPE: Final = 4
"""Kafka's ConfigResource.Type."""
EXPIRES_AT_MS: Final = "expires.at.ms"
"""No config: set beside others, it says until when they hold; deleted, it ends the temporary values."""
_DIGITS: Final = 20
Configs = Mapping[ConfigResource, Mapping[str, str]]


def resource_of(key: ResourceKey) -> ConfigResource | None:
    """The topic or broker that a message names; None where it is neither."""
    kind, name = key
    if kind == TOPIC_TYPE:
        return ConfigResource(TOPIC, name)
    if kind == BROKER_TYPE and not name:
        return ConfigResource(BROKER, DEFAULT_RESOURCE)
    if kind == BROKER_TYPE and name.isascii() and name.isdigit():
        return ConfigResource(BROKER, str(int(name)))
    return None


# Altering


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request makes of a resource's configs."""

    values: dict[str, str | None]
    """What is set, and with None what is removed."""
    expires_at_ms: int | None = None
    """Until when `values` hold, in ms since the epoch; None: until they are changed again."""
    end_temporary: bool = False
    """Whether the resource's temporary values end now."""


def plan_of(
    ops: Sequence[ConfigOp],
    keys: Mapping[str, ConfigKey],
    current: Mapping[str, str],
    replaces: bool,
    now_ms: int,
) -> Plan:
    """The plan of ops on `keys`, and on EXPIRES_AT_MS. Raises RequestRejected."""
    expiries = [op for op in ops if op.name == EXPIRES_AT_MS]
    values = changes_of([op for op in ops if op.name != EXPIRES_AT_MS], keys, current, replaces)
    if not expiries:
        return Plan(values)
    if len(expiries) > 1:
        raise RequestRejected(
            ErrorCode.invalid_request, f"Error due to duplicate config keys: {EXPIRES_AT_MS}"
        )
    if replaces:
        problem = "it takes IncrementalAlterConfigs: what AlterConfigs sets holds for good"
        raise RequestRejected(ErrorCode.invalid_config, f"{EXPIRES_AT_MS}: {problem}")
    [op] = expiries
    if op.operation == DELETE:
        return Plan(values, end_temporary=True)
    return Plan(values, _end(op, values, now_ms))


def _end(op: ConfigOp, values: Mapping[str, str | None], now_ms: int) -> int:
    if op.operation != SET or op.value is None:
        raise RequestRejected(
            ErrorCode.invalid_request, f"{EXPIRES_AT_MS} takes a value to set, or is deleted"
        )
    text = op.value.strip()
    if not (text.isascii() and text.isdigit() and now_ms < int(text[:_DIGITS]) <= LAST_TIME_MS):
        problem = "it takes a time to come, in ms since the epoch"
        raise RequestRejected(ErrorCode.invalid_config, f"{EXPIRES_AT_MS} is {op.value}; {problem}")
    if not values:
        problem = "says until when the resource's other quotas in the request hold; there are none"
        raise RequestRejected(ErrorCode.invalid_config, f"{EXPIRES_AT_MS} {problem}")
    return int(text)


def changes_of(
    ops: Sequence[ConfigOp], keys: Mapping[str, ConfigKey], current: Mapping[str, str], replaces: bool
) -> dict[str, str | None]:
    """What the ops, all of them on `keys`, set, and with None what they remove. Raises RequestRejected.

    `replaces`: configs that are not named are removed; one that has its value already is left as it is, so
    that old tools, which write back what they have read, make no temporary value a lasting one.
    """
    changes: dict[str, str | None] = {}
    for op in ops:
        if op.name in changes:
            raise RequestRejected(ErrorCode.invalid_request, f"Error due to duplicate config keys: {op.name}")
        changes[op.name] = _value(op, keys[op.name], current.get(op.name))
    if replaces:
        changes = {name: value for name, value in changes.items() if value != current.get(name)}
        named = {op.name for op in ops}
        changes |= {name: None for name in current if name in keys and name not in named}
    return changes


def _value(op: ConfigOp, key: ConfigKey, current: str | None) -> str | None:
    if op.operation == DELETE:
        return None
    if op.operation not in (SET, APPEND, SUBTRACT):
        raise RequestRejected(
            ErrorCode.invalid_request, f"The config operation {op.operation} of {op.name} is not known"
        )
    if op.value is None:
        raise RequestRejected(ErrorCode.invalid_request, key.problem(None))
    text = op.value if op.operation == SET else _listed(op, op.value, key, current)
    problem = key.problem(text)
    if problem:
        raise RequestRejected(ErrorCode.invalid_config, problem)
    return key.canonical(text)


def _listed(op: ConfigOp, value: str, key: ConfigKey, current: str | None) -> str:
    """The list after APPEND or SUBTRACT."""
    if key.type != LIST:
        what = "APPEND to" if op.operation == APPEND else "SUBTRACT from"
        raise RequestRejected(
            ErrorCode.invalid_config, f"Can't {what} key {key.name} because its type is not LIST."
        )
    elements = split_list(key.default or "" if current is None else current)
    named = split_list(value)
    if op.operation == SUBTRACT:
        return ",".join([element for element in elements if element not in named])
    return ",".join([*elements, *[element for element in named if element not in elements]])


# Describing


def entries_of(
    resource: ConfigResource, keys: Mapping[str, ConfigKey], configs: Configs, names: frozenset[str] | None
) -> list[Entry]:
    """The resource's configs, those of `names` where that is not None. One without a value and without a
    default is shown only to who asks for it by its name.
    """
    own = configs.get(resource, {})
    default = configs.get(ConfigResource(resource.type, DEFAULT_RESOURCE), {})
    source = _source(resource)
    entries: list[Entry] = []
    for key in keys.values():
        if names is not None and key.name not in names:
            continue
        values: list[tuple[str | None, int]] = []
        if key.name in own:
            values.append((own[key.name], source))
        if resource.name != DEFAULT_RESOURCE and key.name in default:
            values.append((default[key.name], DYNAMIC_DEFAULT_BROKER_CONFIG))
        # Of the default broker, brokers describe no more than what is set.
        if key.default is not None and source != DYNAMIC_DEFAULT_BROKER_CONFIG:
            values.append((key.default, DEFAULT_CONFIG))
        if values or names is not None:
            value, holds = values[0] if values else (key.default, DEFAULT_CONFIG)
            entries.append(Entry(key.name, value, holds, key.type, key.documentation, tuple(values)))
    return entries


def _source(resource: ConfigResource) -> int:
    if resource.type == TOPIC:
        return TOPIC_CONFIG
    return DYNAMIC_DEFAULT_BROKER_CONFIG if resource.name == DEFAULT_RESOURCE else DYNAMIC_BROKER_CONFIG
