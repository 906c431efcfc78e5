"""Quotas of topics and brokers in YAML: `NAME: {CONFIG: VALUE, ...}`; `<default>` is for all others.

`action` in a topic's mapping is short for every config of an action that accepts the value: `action: omit`
means `consumer.byte.rate.action: omit`, or `topic.consumer.byte.rate.action: omit` if the mapping has
`topic.consumer.byte.rate`.
"""

from collections.abc import Mapping
from typing import Final

from proxy.config.yaml.convert import show, unknown
from proxy.config.yaml.units import number_hint
from proxy.errors import KeyPath, SettingsError
from proxy.quota.config_rules import ConfigRules
from proxy.quota.limits.resources import (
    BOOLEAN,
    BROKER,
    DEFAULT_RESOURCE,
    LIST,
    LONG,
    TOPIC,
    ConfigKey,
    ConfigResource,
    Resources,
    broker_name,
)
from proxy.store.layers import ConfigLayer
from proxy.wire.long_names import MAX_TOPIC_NAME

ACTION: Final = "action"
"""The short key. The configs that it stands for end with it, after a dot."""
_WHOLE_TOPIC: Final = "topic."
"""The configs of whole topics begin with it."""


def read_resources(
    topics: Mapping[str, object], brokers: Mapping[str | int, object], rules: ConfigRules, at: KeyPath
) -> ConfigLayer:
    """The configs of `topics` and `brokers`, which stand below the key `at`. Raises SettingsError."""
    layer = ConfigLayer()
    for name, values in topics.items():
        key: KeyPath = (*at, "topics", name)
        _check_topic(name, key)
        _read(layer, ConfigResource(TOPIC, name), values, rules, key)
    for node_id, values in brokers.items():
        key = (*at, "brokers", str(node_id))
        resource = ConfigResource(BROKER, _broker(node_id, key))
        if resource in layer.lasting:
            raise SettingsError("occurs twice; merge the two entries", key)
        _read(layer, resource, values, rules, key)
    problem = rules.conflict(resources_of(layer))
    if problem:
        raise SettingsError(problem, at)
    return layer


def resources_of(layer: ConfigLayer) -> Resources:
    """The configs of this layer alone."""
    by_type: dict[str, dict[str, dict[str, str]]] = {TOPIC: {}, BROKER: {}}
    for resource, values in layer.lasting.items():
        by_type[resource.type][resource.name] = {
            name: value for name, value in values.items() if value is not None
        }
    return Resources(by_type[TOPIC], by_type[BROKER])


def _check_topic(name: str, key: KeyPath) -> None:
    fit = 0 < len(name) <= MAX_TOPIC_NAME and name not in (".", "..")
    if name != DEFAULT_RESOURCE and not (
        fit and name.isascii() and all(letter.isalnum() or letter in "._-" for letter in name)
    ):
        raise SettingsError(f"not a valid topic name; expected a topic name or {DEFAULT_RESOURCE}", key)


def _broker(node_id: str | int, key: KeyPath) -> str:
    text = str(node_id)
    if text == DEFAULT_RESOURCE:
        return text
    name = broker_name(text)
    if name is None:
        raise SettingsError(f"expected a broker's node id or {DEFAULT_RESOURCE}", key)
    return name


def _read(
    layer: ConfigLayer, resource: ConfigResource, values: object, rules: ConfigRules, at: KeyPath
) -> None:
    """Add the configs of a topic or broker to the layer. Raises SettingsError with the key."""
    keys = rules.keys(resource.type)
    if not isinstance(values, dict):
        raise SettingsError(f"expected a mapping of configs, got {show(values)}", at)
    if not values:
        raise SettingsError(f"no quota; expected at least one of {', '.join(sorted(keys))}", at)
    for name, value in values.items():
        key = (*at, str(name))
        if name == ACTION and resource.type == TOPIC:
            for config in _actions(keys, values, key):
                if config.name in values:
                    raise SettingsError(f"{config.name} is set as well; keep one of them", key)
                layer.set_lasting(resource, config.name, str(value))
            continue
        found = keys.get(str(name))
        if name in rules.left_to_brokers:
            advice = "set it on the brokers, or add a replication listener (docs/replication.md)"
            raise SettingsError(f"the brokers enforce this config; {advice}", key)
        if name in rules.unenforced:
            advice = "add a replication listener (docs/replication.md)"
            raise SettingsError(f"neither the proxy nor the brokers would enforce it; {advice}", key)
        if found is None:
            raise unknown(key, [*keys, ACTION] if resource.type == TOPIC else keys)
        layer.set_lasting(resource, found.name, _text(found, value, key))


def _actions(keys: Mapping[str, ConfigKey], values: Mapping[str, object], key: KeyPath) -> list[ConfigKey]:
    """The configs that `action: VALUE` stands for."""
    value = values[ACTION]
    actions = [config for name, config in keys.items() if name.endswith(f".{ACTION}")]
    found = [config for config in actions if value in config.choices]
    if not found:
        choices = sorted({choice for config in actions for choice in config.choices})
        raise SettingsError(f"expected one of {', '.join(choices)}, got {show(value)}", key)
    limited = [config for config in found if config.name.removesuffix(f".{ACTION}") in values]
    if any(config.name.startswith(_WHOLE_TOPIC) for config in limited):
        return limited
    return [config for config in found if not config.name.startswith(_WHOLE_TOPIC)]


def _text(config: ConfigKey, value: object, key: KeyPath) -> str:
    """Convert a YAML value to the text that Kafka uses."""
    text: str | None = None
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = str(value).lower() if config.type == BOOLEAN else None
    elif isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        text = str(int(value)) if config.type == LONG else None
    elif isinstance(value, list) and all(isinstance(element, str) for element in value):
        text = ",".join(value) if config.type == LIST else None
    if text is None:
        raise SettingsError(f"expected {_EXPECTED.get(config.type, 'text')}, got {show(value)}", key)
    problem = config.problem(text)
    if problem:
        hint = number_hint(value) if config.type == LONG else ""
        raise SettingsError(problem + hint, key)
    return config.canonical(text)


_EXPECTED: Final = {
    LONG: "a whole number",
    BOOLEAN: "true or false",
    LIST: "text, or a list of texts, each in quotes",
}
