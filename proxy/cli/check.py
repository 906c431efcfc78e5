"""Reading the configuration, and the output of `quota-proxy check`: the settings with their defaults."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from proxy.cli.check_listener import listener_lines
from proxy.cli.quotas.entity import show_name, show_parts
from proxy.config.load import located_in
from proxy.config.open_files import open_files
from proxy.config.ports import broker_ports
from proxy.config.settings import Listener, Settings
from proxy.config.usage import UsageSettings
from proxy.quota.identity import ANONYMOUS, DEFAULT, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.enforcement import PACE
from proxy.quota.limits.scopes import BROKER_SCOPE
from proxy.quota.quota import QuotaKind
from proxy.store.from_settings import Configuration, load_configuration
from proxy.store.layers import ClientLayer, ConfigLayer
from proxy.store.yaml_file import read_scopes
from proxy.upstream.addresses import join_address

MAX_NAMES: Final = 3
"""Names in a warning."""


def check(path: Path) -> list[str]:
    """Describe the configuration of a file. Raises SettingsError."""
    return describe(read_configuration(path, load_kinds()))


def read_configuration(path: Path, kinds: Sequence[QuotaKind]) -> Configuration:
    """Read a file, and open the files that it names. Raises SettingsError."""
    configuration = load_configuration(path, kinds)
    with located_in(path):
        open_files(configuration.settings)
    return configuration


def describe(configuration: Configuration) -> list[str]:
    """Lines of plain text: the cluster, each listener with its ports, the admin port, the quotas."""
    settings = configuration.settings
    lines = [f"cluster   {settings.cluster}"]
    for listener in settings.listeners:
        lines += [f"listener  {_listener(settings, listener)}", *listener_lines(settings, listener)]
    lines.append(f"admin     {join_address(settings.admin.bind, _port(settings.admin.port))}")
    if settings.worker_count > 1:
        lines.append(f"workers   {settings.worker_count}")
    lines.append(f"quotas    {_rule(settings)}")
    lines.append(f"store     {_store(settings)}")
    if settings.usage is not None:
        lines.append(f"usage     {_usage(settings.usage)}")
    if settings.quotas.callback is not None:
        lines.append(f"callback  {settings.quotas.callback}")
    scopes = read_scopes(settings.quotas.clients, ())
    quotas = [*_quotas(configuration.quotas.layer, scopes), *_configs(configuration.quotas.configs)]
    return [*lines, *(quotas or ["quota     none in this file"]), *_without_effect(configuration)]


def _without_effect(configuration: Configuration) -> Iterator[str]:
    """Warn of quotas of users where every client is ANONYMOUS."""
    if any(listener.principal is not None for listener in configuration.settings.client_listeners):
        return
    layer = configuration.quotas.layer
    named = {entity.user or DEFAULT for entity in (*layer.lasting, *layer.temporary)}
    users = sorted(named - {DEFAULT, ANONYMOUS})
    if users:
        shown = ", ".join([*map(show_name, users[:MAX_NAMES]), *["..."] * (len(users) > MAX_NAMES)])
        why = "no listener has a principal (docs/security.md)"
        yield f"warning   quotas of these users have no effect: {shown}; {why}"


def _quotas(layer: ClientLayer, scopes: Mapping[QuotaEntity, str]) -> Iterator[str]:
    for entity in {**layer.lasting, **scopes}:
        values = layer.lasting.get(entity, {})
        shown = [f"{key} {_number(value)}" for key, value in values.items() if value is not None]
        if entity in scopes:
            shown.append(f"scope {scopes[entity]}")
        yield f"quota     {show_parts(entity.parts())}: {', '.join(shown)}"
    for entity, temporaries in layer.temporary.items():
        for key, temporary in temporaries.items():
            until = datetime.fromtimestamp(temporary.until_ms / 1000, UTC).isoformat(timespec="seconds")
            assert temporary.value is not None
            yield f"quota     {show_parts(entity.parts())}: {key} {_number(temporary.value)} until {until}"


def _configs(layer: ConfigLayer) -> Iterator[str]:
    for resource, values in layer.lasting.items():
        yield f"quota     {resource}: {', '.join(f'{key} {value}' for key, value in values.items())}"


def _store(settings: Settings) -> str:
    store = settings.quotas.store
    return "none: changes with tools are rejected" if store == "none" else f"topic {store.topic}"


def _usage(usage: UsageSettings) -> str:
    sinks = [f"topic {usage.kafka.topic}"] if usage.kafka is not None else []
    if usage.files is not None:
        sinks.append(f"files in {usage.files.folder} ({usage.files.keep} of {usage.files.max_bytes} bytes)")
    return f"events every {usage.interval_seconds} s to {' and '.join(sinks)}"


def _listener(settings: Settings, listener: Listener) -> str:
    """Describe where a listener listens, what it advertises, and its brokers."""
    ports = broker_ports(settings, listener)
    brokers = "at any free port each"
    if ports:
        last = len(ports) - 1
        brokers = (
            f"at ports {ports[0]} to {ports[-1]} for node ids 0 to {last}"
            if last
            else f"at port {ports[0]} for node id 0"
        )
    if listener.replication:
        at = ", ".join(f"{node_id} at {text}" for node_id, text in sorted(listener.upstream.brokers.items()))
        return f"{listener.name}: replication on {listener.bind}, brokers {brokers}, upstream {at}"
    if listener.sni is not None:
        brokers = f"{listener.sni.broker_host} at the same port"
    bootstrap = join_address(listener.bind, _port(listener.bootstrap_port))
    hosts = listener.upstream.hosts
    only = f", brokers only at {', '.join(hosts)}" if hosts else ""
    return (
        f"{listener.name}: bootstrap {bootstrap}, brokers {brokers}, "
        f"advertised as {_advertised(listener)}, upstream {', '.join(listener.upstream.bootstrap)}{only}"
    )


def _advertised(listener: Listener) -> str:
    """The host that clients are told, with the ports where these are not the listener's own."""
    told = listener.advertised_host
    if listener.sni is not None and listener.sni.advertised_port is not None:
        told += f" at port {listener.sni.advertised_port}"
    if listener.advertised_broker_port_base is not None:
        told += f" at ports from {listener.advertised_broker_port_base} on"
    if listener.advertised_brokers:
        brokers = sorted(listener.advertised_brokers.items())
        told += f" (broker {', '.join(f'{node_id} at {text}' for node_id, text in brokers)})"
    return told


def _port(port: int) -> str:
    return str(port) if port else "any free port"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


def _rule(settings: Settings) -> str:
    quotas = settings.quotas
    scope = "" if quotas.scope == BROKER_SCOPE else f", scope {quotas.scope}"
    if quotas.algorithm == PACE:
        return f"algorithm {PACE}, burst of {quotas.burst_seconds:g} s{scope}"
    return (
        f"algorithm {quotas.algorithm}, {quotas.window_num} samples of {quotas.window_size_seconds} s{scope}"
    )
