"""The layers that have a value of a quota: the value in force, and those that it overrides.

    {"names": {"topic": ["producer.byte.rate", ...], "broker": [...]},
     "topics": {"orders": {"producer.byte.rate": [
         {"from": "tools", "value": "7", "expires_at_ms": 1767225600000}, {"from": "file", "value": "5"}]}},
     "brokers": {"<default>": {...}}}

Values are in order of precedence: the first one is in force. A null `value` is no limit, and hides those
behind it. `names` are the configs of topics and brokers that are the proxy's quotas.
"""

from collections.abc import Hashable
from typing import Final, TypeVar

import msgspec

from proxy.errors import BadResponse
from proxy.quota.limits.resources import BROKER, ConfigResource
from proxy.store.layers import Layers

Entity = TypeVar("Entity", bound=Hashable)
Value = TypeVar("Value")


class LayerValue(msgspec.Struct, omit_defaults=True, frozen=True):
    """A value of one layer."""

    source: str = msgspec.field(name="from")
    """`tools` or `file`."""
    value: float | str | None
    expires_at_ms: int | None = None


class ConfigReport(msgspec.Struct):
    """The configs of all topics and brokers; each config has the values of all layers."""

    names: dict[str, list[str]]
    topics: dict[str, dict[str, list[LayerValue]]]
    brokers: dict[str, dict[str, list[LayerValue]]]


_decoder: Final = msgspec.json.Decoder(ConfigReport)


def layer_values(layers: Layers[Entity, Value], entity: Entity, now_ms: int) -> dict[str, list[LayerValue]]:
    """The values of an entity in all layers, by quota."""
    found: dict[str, list[LayerValue]] = {}
    for name in layers.names(entity):
        for each in layers.values(entity, name, now_ms):
            value = each.value
            assert value is None or isinstance(value, (float, int, str))
            found.setdefault(name, []).append(LayerValue(each.source, value, each.until_ms))
    return found


def add_resource(
    report: ConfigReport, resource: ConfigResource, layers: Layers[ConfigResource, str], now_ms: int
) -> None:
    """Add a topic or a broker to the report."""
    values = layer_values(layers, resource, now_ms)
    if values:
        (report.brokers if resource.type == BROKER else report.topics)[resource.name] = values


def encode_report(report: ConfigReport) -> str:
    """The report as JSON."""
    return msgspec.json.encode(report).decode()


def decode_report(text: str) -> ConfigReport:
    """Read the JSON of encode_report(). Raises BadResponse."""
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise BadResponse(f"the server's report of quotas does not parse: {error}") from error
