"""Reads the configuration file, and checks what concerns more than one key.

It rejects keys that contradict each other. `proxy.store.from_settings` checks the quotas.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

from msgspec.structs import replace

from proxy.config.advertised import check_advertised
from proxy.config.check_security import check_admin, check_logins, check_security, with_absolute_paths
from proxy.config.frozen import frozen
from proxy.config.ports import WILDCARDS, broker_ports, check_ports, meet
from proxy.config.settings import Listener, Settings
from proxy.config.usage import check_given, checked_usage
from proxy.config.yaml import document
from proxy.config.yaml.convert import convert
from proxy.errors import KeyPath, SettingsError, spell
from proxy.security.host_patterns import HostPattern
from proxy.upstream.addresses import split_address


@frozen
def load(path: Path) -> Settings:
    """Read and check the file. Raises SettingsError with the file, the line and the key.

    Does not check the quotas, nor open the files that the configuration names.
    """
    file = document.read(path)
    try:
        if file.value is None:
            raise SettingsError("the file is empty; set at least listeners[0].upstream.bootstrap")
        check_given(file.value)
        folder = path.absolute().parent
        settings = with_absolute_paths(convert(file.value, Settings), folder)
        store = settings.quotas.store
        usage = checked_usage(settings.usage, folder, "" if store == "none" else store.topic)
        settings = replace(settings, usage=usage)
        _check_listeners(settings)
        _check_replication(settings)
        check_ports(settings)
        check_advertised(settings)
        _check_workers(settings)
        check_admin(settings)
        check_logins(settings)
    except SettingsError as error:
        raise file.locate(error) from error
    return settings


@contextmanager
def located_in(path: Path) -> Iterator[None]:
    """Add the file and the line to a SettingsError about settings that load() returned.

    The file is parsed a second time for that: keeping the parsed YAML would take many times the memory of the
    settings, and only an error needs a line.
    """
    try:
        yield
    except SettingsError as error:
        try:
            located = document.read(path).locate(error)
        except SettingsError:
            located = error.at(path, None)
        raise located from error


def _check_listeners(settings: Settings) -> None:
    names: dict[str, int] = {}
    for place, listener in enumerate(settings.listeners):
        key: KeyPath = ("listeners", place)
        first = names.setdefault(listener.name, place)
        if first != place:
            problem = f"{spell(('listeners', first))} has the name {listener.name!r} already; choose another"
            raise SettingsError(problem, (*key, "name"))
        for name in ("bind", "advertised_host"):
            _check_host(getattr(listener, name), (*key, name))
        if listener.advertised_host in WILDCARDS:
            problem = (
                f"clients cannot connect to {listener.advertised_host}; set the host that they connect to"
            )
            raise SettingsError(problem, (*key, "advertised_host"))
        if listener.replication:
            _check_brokers(settings, listener, (*key, "upstream"))
        else:
            _check_upstream(settings, listener, (*key, "upstream"))
        check_security(listener, key)


def _check_host(host: str, key: KeyPath) -> None:
    """Raise SettingsError for a host with a port or a protocol, with which no client could connect."""
    if re.fullmatch(r"[^\s:/]+", host):
        return
    with suppress(ValueError):
        ip_address(host.removeprefix("[").removesuffix("]"))
        return
    problem = f"expected a host name or an address, without a port, got {host!r}"
    raise SettingsError(f"{problem}; ports have keys of their own", key)


def _check_workers(settings: Settings) -> None:
    """Raise SettingsError for a port of 0 with several workers: they must serve the same ports."""
    if settings.worker_count == 1:
        return
    for place, listener in enumerate(settings.listeners):
        for name in ("bootstrap_port", "broker_port_base"):
            needed = listener.sni is None if name == "broker_port_base" else not listener.replication
            if needed and getattr(listener, name) == 0:
                problem = "workers serve the same ports; set a port, or workers: 1"
                raise SettingsError(problem, ("listeners", place, name))


def _check_replication(settings: Settings) -> None:
    """Raise SettingsError if there is no client listener through which a replication listener can learn the
    cluster, or no replication listener for quotas.replication.enforce.
    """
    has_listener = len(settings.client_listeners) < len(settings.listeners)
    if not settings.client_listeners:
        problem = "a replication listener requires a client listener of the same cluster; add one"
        raise SettingsError(problem, ("listeners",))
    if has_listener and not any(listener.asks for listener in settings.client_listeners):
        problem = (
            "a replication listener requires a client listener through which the proxy can request metadata; "
            "set upstream.sasl on one"
        )
        raise SettingsError(problem, ("listeners",))
    enforce = settings.quotas.replication.enforce
    if enforce not in (None, "broker") and not has_listener:
        problem = f"{enforce} requires a replication listener; set listeners[].replication on one"
        raise SettingsError(problem, ("quotas", "replication", "enforce"))


def _check_brokers(settings: Settings, listener: Listener, key: KeyPath) -> None:
    """Raise SettingsError if the upstream of a replication listener is not possible."""
    if listener.upstream.bootstrap:
        problem = "not allowed on a replication listener; set upstream.brokers instead"
        raise SettingsError(problem, (*key, "bootstrap"))
    if listener.upstream.hosts:
        problem = "not allowed on a replication listener: upstream.brokers has all its addresses"
        raise SettingsError(problem, (*key, "hosts"))
    if not listener.upstream.brokers:
        problem = "required on a replication listener; set HOST:PORT by node id for every broker"
        raise SettingsError(problem, (*key, "brokers"))
    ports = broker_ports(settings, listener)
    for node_id, text in listener.upstream.brokers.items():
        place = (*key, "brokers", str(node_id))
        try:
            address = split_address(text)
        except ValueError as error:
            raise SettingsError(str(error), place) from error
        if listener.broker_port_base == 0:
            continue
        port = listener.broker_port_base + node_id
        if port not in ports:
            problem = f"its port would be {port}, and the last broker port is {ports[-1]}"
            raise SettingsError(f"{problem}; raise broker_port_count", place)
        if address[1] in ports and meet(address[0], listener.bind):
            raise SettingsError(f"{text} is this proxy itself; set a broker's address", place)


def _check_upstream(settings: Settings, listener: Listener, key: KeyPath) -> None:
    """Raise SettingsError if the upstream of a client listener is not possible."""
    if listener.upstream.brokers:
        problem = "only allowed on a replication listener; set upstream.bootstrap instead"
        raise SettingsError(problem, (*key, "brokers"))
    if not listener.upstream.bootstrap:
        raise SettingsError("required", (*key, "bootstrap"))
    for place, text in enumerate(listener.upstream.hosts):
        try:
            HostPattern(text)
        except ValueError as error:
            raise SettingsError(str(error), (*key, "hosts", place)) from error
    key = (*key, "bootstrap")
    own = [(own.bind, own.bootstrap_port) for own in settings.listeners]
    own += [(own.advertised_host, own.bootstrap_port) for own in settings.listeners]
    sni = [own.sni for own in settings.listeners if own.sni is not None]
    own += [(each.bootstrap_host, each.advertised_port or each.port) for each in sni]
    for place, text in enumerate(listener.upstream.bootstrap):
        try:
            address = split_address(text)
        except ValueError as error:
            raise SettingsError(str(error), (*key, place)) from error
        if address in own:
            raise SettingsError(f"{text} is this proxy itself; set a broker's address", (*key, place))
