"""The ports of the configuration: no two things share one, and brokers have enough of them."""

from typing import TYPE_CHECKING, Final

from proxy.errors import KeyPath, SettingsError, spell

if TYPE_CHECKING:
    from proxy.config.settings import Listener, Settings

WILDCARDS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, never bound
BROKER_PORTS_AT_LEAST: Final = 10
"""With fewer ports before the next one in use, a broker_port_base is taken for a slip."""


def ports_in(settings: "Settings") -> list[tuple[KeyPath, str, int]]:
    """Every port that the file gives by its number: key, address, port."""
    ports: list[tuple[KeyPath, str, int]] = [(("admin", "port"), settings.admin.bind, settings.admin.port)]
    for place, listener in enumerate(settings.listeners):
        if not listener.replication:
            ports.append((("listeners", place, "bootstrap_port"), listener.bind, listener.bootstrap_port))
        ports.append((("listeners", place, "broker_port_base"), listener.bind, listener.broker_port_base))
    return [port for port in ports if port[2] != 0]


def meet(one: str, other: str) -> bool:
    """Whether two addresses to bind can be the same one."""
    one, other = (host.replace("localhost", "127.0.0.1") for host in (one, other))
    return one == other or one in WILDCARDS or other in WILDCARDS


def check_ports(settings: "Settings") -> None:
    """Raises SettingsError."""
    ports = ports_in(settings)
    for place, (key, bind, port) in enumerate(ports):
        for other_key, other_bind, other_port in ports[:place]:
            if port == other_port and meet(bind, other_bind):
                raise SettingsError(f"port {port} is {spell(other_key)} too; give each its own", key)
    for place, listener in enumerate(settings.listeners):
        _check_broker_ports(settings, listener, ("listeners", place))


def _check_broker_ports(settings: "Settings", listener: "Listener", key: KeyPath) -> None:
    """The listener's broker ports are enough of them, and hold nobody else's port."""
    base, count = listener.broker_port_base, listener.broker_port_count
    if base == 0:
        if count is not None:
            raise SettingsError("means nothing where broker_port_base is 0", (*key, "broker_port_count"))
        return
    end = base + (BROKER_PORTS_AT_LEAST if count is None else count)
    kept = f"ports {base} to {end - 1} are kept for brokers (base + node id)"
    for other_key, bind, port in ports_in(settings):
        if base < port < end and meet(bind, listener.bind):
            advice = "move one of them, or set broker_port_count to as many as this cluster needs"
            raise SettingsError(
                f"{kept}, but {port} is {spell(other_key)}; {advice}", (*key, "broker_port_base")
            )
    if end > 65536:
        raise SettingsError(f"{kept}, but 65535 is the last; lower the base", (*key, "broker_port_base"))
