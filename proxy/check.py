"""What `quota-proxy check` prints: the settings as the proxy will take them, defaults filled in."""

from proxy.quota.limits import PACE
from proxy.settings import Listener, Settings
from proxy.store.yaml_file import read_clients


def describe(settings: Settings) -> list[str]:
    """Lines of plain text: the cluster, each listener with its ports, the admin port, the quotas."""
    lines = [f"cluster   {settings.cluster}"]
    lines += [f"listener  {_listener(settings, listener)}" for listener in settings.listeners]
    lines.append(f"admin     {settings.admin.bind}:{_port(settings.admin.port)}")
    lines.append(f"quotas    {_rule(settings)}")
    quotas = read_clients(settings.quotas.clients, ())
    for entity, values in quotas.items():
        lines.append(
            f"quota     {entity}: " + ", ".join(f"{key} {_number(value)}" for key, value in values.items())
        )
    return lines if quotas else [*lines, "quota     none: nobody is held back"]


def _listener(settings: Settings, listener: Listener) -> str:
    ports = settings.broker_ports(listener)
    brokers = "any free port each"
    if ports:
        last = len(ports) - 1
        brokers = (
            f"ports {ports[0]} to {ports[-1]} for node ids 0 to {last}"
            if last
            else f"port {ports[0]} for node id 0"
        )
    return (
        f"{listener.name}: bootstrap {listener.bind}:{_port(listener.bootstrap_port)}, brokers {brokers}, "
        f"advertised as {listener.advertised_host}, upstream {', '.join(listener.upstream.bootstrap)}"
    )


def _port(port: int) -> str:
    return str(port) if port else "any free port"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


def _rule(settings: Settings) -> str:
    quotas = settings.quotas
    if quotas.algorithm == PACE:
        return f"{PACE}, {quotas.burst_seconds:g} s of burst"
    return f"{quotas.algorithm}, {quotas.window_num} samples of {quotas.window_size_seconds} s"
