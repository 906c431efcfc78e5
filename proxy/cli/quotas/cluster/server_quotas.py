"""The quotas of a server: those of clients, and those of topics and brokers where the server is a proxy."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from proxy.cli.quotas.cluster.client import QuotaClient
from proxy.cli.quotas.cluster.config_client import ConfigClient
from proxy.cli.quotas.entity import CLIENTS, SECTIONS, Entity, Quotas, Value, show_entity
from proxy.cli.quotas.values import show_time
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC
from proxy.store.layer_report import ConfigReport, LayerValue
from proxy.store.layers import FILE

NO_CONFIGS: Final = (
    "the server is not a quota proxy of this version, so it has no quotas of topics and brokers"
)


@dataclass(frozen=True, slots=True)
class ServerQuotas:
    """The lasting quotas of a server."""

    lasting: Quotas
    of_file: Quotas | None
    """Those of the proxy's configuration file, effective or not; None if the server does not report them."""
    sections: tuple[str, ...]
    """What the server has: SECTIONS, or only `clients`."""
    names: frozenset[str]
    """The configs of topics and brokers that are its quotas."""


async def read_server(client: QuotaClient, configs: ConfigClient) -> ServerQuotas:
    """Request the lasting quotas."""
    lasting = await client.describe_lasting()
    of_file = await client.describe_file()
    report = await configs.report()
    if report is None:
        return ServerQuotas(lasting, of_file, (CLIENTS,), frozenset())
    return ServerQuotas(
        {**lasting, **lasting_configs(report)},
        None if of_file is None else {**of_file, **file_configs(report)},
        SECTIONS,
        frozenset(name for names in report.names.values() for name in names),
    )


def lasting_configs(report: ConfigReport) -> Quotas:
    """The configs without temporary values."""
    return _quotas(report, lambda value: value.expires_at_ms is None)


def effective_configs(report: ConfigReport) -> Quotas:
    """The configs in force."""
    return _quotas(report, lambda value: True)


def file_configs(report: ConfigReport) -> Quotas:
    """The lasting configs of the proxy's configuration file."""
    return _quotas(report, lambda value: value.source == FILE and value.expires_at_ms is None)


def config_layers(report: ConfigReport) -> Iterator[tuple[Entity, str, list[LayerValue]]]:
    """Each config of each topic and broker, with its values in order of precedence."""
    for kind, resources in ((TOPIC, report.topics), (BROKER, report.brokers)):
        for resource, configs in resources.items():
            entity: Entity = ((kind, None if resource == DEFAULT_RESOURCE else resource),)
            for name, values in configs.items():
                yield entity, name, values


def effective_rows(report: ConfigReport, entity: Entity) -> list[tuple[str, str, str]]:
    """The configs that apply to a topic or broker, its own and those of the default: name, value, and where
    the value comes from.
    """
    own: dict[str, tuple[str, str, str]] = {}
    defaults: dict[str, tuple[str, str, str]] = {}
    for of, name, values in config_layers(report):
        value = values[0].value
        if value is None or of[0][0] != entity[0][0] or of[0][1] not in (entity[0][1], None):
            continue
        rows = own if of == entity else defaults
        rows[name] = (name, str(value), f"{show_entity(of)}, {show_source(values[0])}")
    return [row for _, row in sorted({**defaults, **own}.items())]


def show_source(value: LayerValue) -> str:
    """The layer of a value: `file`, `tools`, or `tools until 2026-12-01T00:00:00Z`."""
    until = "" if value.expires_at_ms is None else f" until {show_time(value.expires_at_ms)}"
    return f"{value.source}{until}"


def _quotas(report: ConfigReport, counts: Callable[[LayerValue], bool]) -> Quotas:
    quotas: Quotas = {}
    for entity, name, values in config_layers(report):
        value = _first(each.value for each in values if counts(each))
        if value is not None:
            quotas.setdefault(entity, {})[name] = value
    return quotas


def _first(values: Iterable[Value | None]) -> Value | None:
    return next(iter(values), None)
