"""How a request changes a resource's quota configs, and how they are described: by Kafka's rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.client_quotas import LAST_TIME_MS
from proxy.admin.messages.alter_configs import APPEND, DELETE, SET, SUBTRACT, ConfigOp
from proxy.admin.messages.config_resources import BACK_TO_FILE, EXPIRES_AT_MS, ResourceKey
from proxy.admin.messages.describe_configs import (
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    TOPIC_CONFIG,
    ConfigEntry,
)
from proxy.admin.rejected import RequestRejected
from proxy.quota.limits.resources import (
    BROKER,
    DEFAULT_RESOURCE,
    LIST,
    TOPIC,
    ConfigKey,
    ConfigResource,
    broker_name,
    split_list,
)

TOPIC_TYPE: Final = 2
BROKER_TYPE: Final = 4
"""Kafka's ConfigResource.Type."""
DEFAULT_TOPIC: Final[ResourceKey] = (TOPIC_TYPE, DEFAULT_RESOURCE)
NOT_CONFIGS: Final = (EXPIRES_AT_MS, BACK_TO_FILE)
_DIGITS: Final = 20
"""More than any time in ms has; int() of a text of unbounded length takes quadratic time."""
Configs = Mapping[ConfigResource, Mapping[str, str]]


def resource_of(key: ResourceKey) -> ConfigResource | None:
    """Return the topic or broker that a message names; None for another type or an invalid name."""
    kind, name = key
    if kind == TOPIC_TYPE:
        return ConfigResource(TOPIC, name)
    if kind == BROKER_TYPE and not name:
        return ConfigResource(BROKER, DEFAULT_RESOURCE)
    node_id = broker_name(name) if kind == BROKER_TYPE else None
    return None if node_id is None else ConfigResource(BROKER, node_id)


# Altering


@dataclass(frozen=True, slots=True)
class Plan:
    """How a request changes a resource's quota configs."""

    values: dict[str, str | None]
    """Values to set; None to remove."""
    expires_at_ms: int | None = None
    """Until when `values` hold, in ms since the epoch; None for no end."""
    end_temporary: bool = False
    """Whether the resource's temporary values end now."""
    back_to_file: bool = False
    """Whether removals return the values to the file."""


def plan_of(
    ops: Sequence[ConfigOp],
    keys: Mapping[str, ConfigKey],
    current: Mapping[str, str],
    replaces: bool,
    now_ms: int,
) -> Plan:
    """Return the plan for ops on `keys` and NOT_CONFIGS. Raises RequestRejected."""
    special = {op.name: op for op in ops if op.name in NOT_CONFIGS}
    values = changes_of([op for op in ops if op.name not in NOT_CONFIGS], keys, current, replaces)
    if not special:
        return Plan(values)
    _check_special(ops, replaces)
    if BACK_TO_FILE in special:
        return Plan(values, back_to_file=True)
    op = special[EXPIRES_AT_MS]
    if op.operation == DELETE:
        return Plan(values, end_temporary=True)
    return Plan(values, _end(op, values, now_ms))


def _check_special(ops: Sequence[ConfigOp], replaces: bool) -> None:
    """Raise RequestRejected if ops on NOT_CONFIGS are contradictory, or not possible in this request."""
    names = [op.name for op in ops if op.name in NOT_CONFIGS]
    for name in names:
        if names.count(name) > 1:
            raise RequestRejected(ErrorCode.invalid_request, f"Error due to duplicate config keys: {name}")
    if replaces:
        problem = "is only supported in IncrementalAlterConfigs: AlterConfigs sets permanent values"
        raise RequestRejected(ErrorCode.invalid_config, f"{names[0]} {problem}")
    if len(names) > 1:
        raise RequestRejected(ErrorCode.invalid_config, f"{' and '.join(names)} exclude each other")
    for op in ops:
        sets_true = op.operation == SET and (op.value or "").strip().lower() == "true"
        if op.name == BACK_TO_FILE and not sets_true:
            raise RequestRejected(ErrorCode.invalid_config, f"{BACK_TO_FILE} must be set to true")


def _end(op: ConfigOp, values: Mapping[str, str | None], now_ms: int) -> int:
    """Return the time in ms to which an op sets `expires.at.ms`. Raises RequestRejected."""
    if op.operation != SET or op.value is None:
        raise RequestRejected(
            ErrorCode.invalid_request, f"{EXPIRES_AT_MS} must be set to a value, or deleted"
        )
    text = op.value.strip()
    fit = text.isascii() and text.isdigit() and len(text) <= _DIGITS
    if not (fit and now_ms < int(text) <= LAST_TIME_MS):
        problem = "it must be a time in the future, in ms since the epoch"
        raise RequestRejected(ErrorCode.invalid_config, f"{EXPIRES_AT_MS} is {op.value}; {problem}")
    if not values:
        problem = "needs a quota of the same resource in the request, which then holds until that time"
        raise RequestRejected(ErrorCode.invalid_config, f"{EXPIRES_AT_MS} {problem}")
    return int(text)


def changes_of(
    ops: Sequence[ConfigOp], keys: Mapping[str, ConfigKey], current: Mapping[str, str], replaces: bool
) -> dict[str, str | None]:
    """Return the values that ops on `keys` set, and None for those that they remove. Raises RequestRejected.

    `replaces`: remove the configs that are not named, and leave a value that does not change as it is. Old
    tools write back what they have read; that must not make a temporary value permanent.
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
    """Return the canonical value of a config after an op; None if it is removed. Raises RequestRejected."""
    if op.operation == DELETE:
        return None
    if op.operation not in (SET, APPEND, SUBTRACT):
        raise RequestRejected(
            ErrorCode.invalid_request, f"Unknown operation type {op.operation} for {op.name}"
        )
    if op.value is None:
        raise RequestRejected(ErrorCode.invalid_request, key.problem(None))
    text = op.value if op.operation == SET else _listed(op, op.value, key, current)
    problem = key.problem(text)
    if problem:
        # For brokers, controllers return the other code.
        code = ErrorCode.invalid_config if key.resource == TOPIC else ErrorCode.invalid_request
        raise RequestRejected(code, problem)
    return key.canonical(text)


def _listed(op: ConfigOp, value: str, key: ConfigKey, current: str | None) -> str:
    """Return the list after APPEND or SUBTRACT."""
    if key.type != LIST:
        what = "APPEND to" if op.operation == APPEND else "SUBTRACT from"
        raise RequestRejected(
            ErrorCode.invalid_config, f"Can't {what} key {key.name} because its type is not LIST."
        )
    elements = split_list(key.default or "" if current is None else current)
    named = split_list(value)
    if op.operation == SUBTRACT:
        subtracted = set(named)
        return ",".join([element for element in elements if element not in subtracted])
    present = set(elements)
    return ",".join([*elements, *[element for element in dict.fromkeys(named) if element not in present]])


# Describing


def entries_of(
    resource: ConfigResource, keys: Mapping[str, ConfigKey], configs: Configs, names: frozenset[str] | None
) -> list[ConfigEntry]:
    """Return the resource's quota configs; those of `names` only, unless that is None.

    A config with neither a value nor a default is returned only if it is in `names`.
    """
    own = configs.get(resource, {})
    default = configs.get(ConfigResource(resource.type, DEFAULT_RESOURCE), {})
    source = _source(resource)
    entries: list[ConfigEntry] = []
    for key in keys.values():
        if names is not None and key.name not in names:
            continue
        values: list[tuple[str | None, int]] = []
        if key.name in own:
            values.append((own[key.name], source))
        if resource.name != DEFAULT_RESOURCE and key.name in default:
            values.append((default[key.name], DYNAMIC_DEFAULT_BROKER_CONFIG))
        # For the default broker, Kafka describes only the configs that are set; for topics, the default of a
        # config that brokers do not have is no synonym.
        defaults = key.default is not None and source != DYNAMIC_DEFAULT_BROKER_CONFIG
        if defaults and resource.type == BROKER:
            values.append((key.default, DEFAULT_CONFIG))
        if values or defaults or names is not None:
            value, holds = values[0] if values else (key.default, DEFAULT_CONFIG)
            entries.append(ConfigEntry(key.name, value, holds, key.type, key.documentation, tuple(values)))
    return entries


def _source(resource: ConfigResource) -> int:
    if resource.type == TOPIC:
        return TOPIC_CONFIG
    return DYNAMIC_DEFAULT_BROKER_CONFIG if resource.name == DEFAULT_RESOURCE else DYNAMIC_BROKER_CONFIG
