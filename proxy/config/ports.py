"""The ports of the configuration: no port is used twice, and every listener has enough for its brokers."""

from typing import Final

from proxy.config.settings import Listener, Settings
from proxy.errors import KeyPath, SettingsError, spell

WILDCARDS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, never bound
BROKER_PORTS_AT_LEAST: Final = 10
"""Without broker_port_count, fewer free ports than this are rejected. They are more likely a mistake than a
cluster so small, and the mistake would only show when a broker joins."""


def broker_ports(settings: Settings, listener: Listener) -> range:
    """The ports that the listener's brokers can have, in the order of node ids.

    Empty where broker_port_base is 0: each broker is then served at any free port.
    """
    base = listener.broker_port_base
    if base == 0:
        return range(0)
    if listener.broker_port_count is not None:
        return range(base, base + listener.broker_port_count)
    others = [port for _, bind, port in _ports_in(settings) if port > base and meet(bind, listener.bind)]
    return range(base, min(others, default=65536))


def meet(one: str, other: str) -> bool:
    """Whether two addresses to bind overlap."""
    one, other = (host.replace("localhost", "127.0.0.1") for host in (one, other))
    return one == other or one in WILDCARDS or other in WILDCARDS


def check_ports(settings: Settings) -> None:
    """Raise SettingsError for ports that are used twice, and for too few broker ports."""
    ports = _ports_in(settings)
    for place, (key, bind, port) in enumerate(ports):
        for other_key, other_bind, other_port in ports[:place]:
            if port == other_port and meet(bind, other_bind):
                raise SettingsError(f"{spell(other_key)} uses port {port} already; choose another", key)
    for place, listener in enumerate(settings.listeners):
        _check_broker_ports(settings, listener, ("listeners", place))


def _ports_in(settings: Settings) -> list[tuple[KeyPath, str, int]]:
    """Every port that the file sets, as (key, address, port)."""
    ports: list[tuple[KeyPath, str, int]] = [(("admin", "port"), settings.admin.bind, settings.admin.port)]
    for place, listener in enumerate(settings.listeners):
        if not listener.replication:
            ports.append((("listeners", place, "bootstrap_port"), listener.bind, listener.bootstrap_port))
        ports.append((("listeners", place, "broker_port_base"), listener.bind, listener.broker_port_base))
    return [port for port in ports if port[2] != 0]


def _check_broker_ports(settings: Settings, listener: Listener, key: KeyPath) -> None:
    """Raise SettingsError if the listener's broker ports cannot be reserved."""
    base, count = listener.broker_port_base, listener.broker_port_count
    if base == 0:
        if count is not None:
            raise SettingsError(
                "has no effect with broker_port_base: 0; remove one of them", (*key, "broker_port_count")
            )
        return
    end = base + (BROKER_PORTS_AT_LEAST if count is None else count)
    reserved = f"ports {base} to {end - 1} are reserved for brokers (base + node id)"
    for other_key, bind, port in _ports_in(settings):
        if base < port < end and meet(bind, listener.bind):
            advice = "move one of them, or set broker_port_count to the number of broker ports you need"
            problem = f"{reserved}, but {spell(other_key)} is {port}; {advice}"
            raise SettingsError(problem, (*key, "broker_port_base"))
    if end > 65536:
        problem = f"{reserved}, but the last port is 65535; lower the base"
        raise SettingsError(problem, (*key, "broker_port_base"))
