"""The addresses of brokers that the proxy advertises to clients, and the checks of their keys.

They differ from the addresses at which the proxy listens if NAT, a NodePort of Kubernetes or a load balancer
forwards connections to it from other ports.
"""

from typing import Final

from proxy.config.ports import WILDCARDS, broker_ports
from proxy.config.settings import Listener, Settings
from proxy.errors import KeyPath, SettingsError, spell
from proxy.upstream.addresses import join_address, split_address

LAST_PORT: Final = 65535
BASE: Final = "advertised_broker_port_base"
BROKERS: Final = "advertised_brokers"


def advertised_address(listener: Listener, node_id: int, port: int) -> tuple[str, int]:
    """Return the advertised host and port of the broker that the proxy serves at `port`."""
    own = listener.advertised_brokers.get(node_id)
    if own is not None:
        return split_address(own)
    base = listener.advertised_broker_port_base
    return listener.advertised_host, port if base is None else base + node_id


def check_advertised(settings: Settings) -> None:
    """Raise SettingsError for advertised addresses that cannot work. `check_ports` has checked the ports."""
    for place, listener in enumerate(settings.listeners):
        key: KeyPath = ("listeners", place)
        given = [name for name in (BASE, BROKERS) if getattr(listener, name)]
        if given:
            _check_allowed(listener, (*key, given[0]))
            _check_base(listener, (*key, BASE))
            _check_brokers(settings, listener, (*key, BROKERS))


def _check_allowed(listener: Listener, key: KeyPath) -> None:
    if listener.replication:
        raise SettingsError(
            "not allowed on a replication listener, which rewrites no address; remove it", key
        )
    if listener.sni is not None:
        raise SettingsError("has no effect with sni; set sni.advertised_port instead", key)
    if listener.broker_port_base == 0:
        problem = "with broker_port_base: 0 nothing can forward to a broker's port; set broker_port_base"
        raise SettingsError(problem, key)


def _check_base(listener: Listener, key: KeyPath) -> None:
    base, count = listener.advertised_broker_port_base, listener.broker_port_count
    if base is not None and count is not None and base + count - 1 > LAST_PORT:
        problem = f"ports {base} to {base + count - 1} would be advertised, but the last port is {LAST_PORT}"
        raise SettingsError(f"{problem}; lower the base, or broker_port_count", key)


def _check_brokers(settings: Settings, listener: Listener, key: KeyPath) -> None:
    count = len(broker_ports(settings, listener))
    seen: dict[tuple[str, int], int] = {}
    for node_id, text in listener.advertised_brokers.items():
        place = (*key, str(node_id))
        try:
            address = split_address(text)
        except ValueError as error:
            raise SettingsError(str(error), place) from error
        if address[0] in WILDCARDS:
            problem = f"clients cannot connect to {address[0]}; set the host that they connect to"
            raise SettingsError(problem, place)
        if node_id >= count:
            problem = f"the listener has ports for node ids 0 to {count - 1}; raise broker_port_count"
            raise SettingsError(problem, place)
        other = seen.setdefault(address, node_id)
        if other != node_id:
            raise SettingsError(f"{spell((*key, str(other)))} is {text} already; choose another", place)
        default = address[1] - (listener.advertised_broker_port_base or listener.broker_port_base)
        taken = 0 <= default < count and default not in listener.advertised_brokers
        if taken and address[0] == listener.advertised_host:
            problem = f"broker {default} is advertised at {join_address(*address)}; choose another"
            raise SettingsError(problem, place)
