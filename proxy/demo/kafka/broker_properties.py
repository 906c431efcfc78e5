"""The server.properties of an embedded broker: Kafka's defaults, adapted to one small machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CLIENTS: Final = "PLAINTEXT"
INTERNAL: Final = "INTERNAL"
CONTROLLER: Final = "CONTROLLER"
LISTENERS: Final = (CLIENTS, INTERNAL, CONTROLLER)

_HOST: Final = "127.0.0.1"
_MOST_CONTROLLERS: Final = 3  # a quorum of three survives the restart of any one of them


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A broker's ports, by listener name, and its folder."""

    node_id: int
    ports: Mapping[str, int]
    folder: Path

    @property
    def log(self) -> Path:
        """The standard output and error of all the broker's runs."""
        return self.folder / "broker.log"

    @property
    def properties_file(self) -> Path:
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        """`log.dirs`: the records, and the metadata log."""
        return self.folder / "data"


def server_properties(
    node: BrokerNode,
    nodes: Sequence[BrokerNode],
    advertised: Mapping[str, str],
    overrides: Mapping[str, str],
    further: Mapping[str, str] | None = None,
) -> str:
    """Return the text of the file for one of `nodes`.

    `advertised` has HOST:PORT for each listener that is not advertised at its own address. `overrides` are
    properties that take precedence. `further` are additional listeners for clients: security protocol by
    name.
    """
    own = {listener: f"{_HOST}:{port}" for listener, port in node.ports.items()}
    controllers = _controllers(nodes)
    is_controller = node in controllers
    protocols = {**dict.fromkeys(LISTENERS, "PLAINTEXT"), **(further or {})}
    listeners = [name for name in protocols if is_controller or name != CONTROLLER]
    properties = {
        "node.id": str(node.node_id),
        "process.roles": "broker,controller" if is_controller else "broker",
        "controller.quorum.voters": ",".join(
            f"{voter.node_id}@{_HOST}:{voter.ports[CONTROLLER]}" for voter in controllers
        ),
        "listeners": _addresses(listeners, own),
        "advertised.listeners": _addresses(
            [name for name in protocols if name != CONTROLLER], {**own, **advertised}
        ),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
        "inter.broker.listener.name": INTERNAL,
        "controller.listener.names": CONTROLLER,
        "log.dirs": str(node.data),
        **_one_machine(len(nodes)),
        **overrides,
    }
    # A backslash is an escape in a properties file.
    return "".join(f"{key}={value}\n" for key, value in properties.items()).replace("\\", "\\\\")


def _controllers(nodes: Sequence[BrokerNode]) -> Sequence[BrokerNode]:
    return nodes[:_MOST_CONTROLLERS] if len(nodes) >= _MOST_CONTROLLERS else nodes[:1]


def _addresses(listeners: Sequence[str], addresses: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{addresses[name]}" for name in listeners)


def _one_machine(brokers: int) -> dict[str, str]:
    """Return the properties that differ from Kafka's defaults on one small machine."""
    replicas = str(min(3, brokers))
    properties = {
        "auto.create.topics.enable": "false",
        # Idle controllers write a record every half a second by default, which all nodes fetch and apply.
        "metadata.max.idle.interval.ms": "5000",
        "num.network.threads": "2",
        "num.io.threads": "4",
        # The default of 128 MiB is a quarter of the heap.
        "log.cleaner.dedupe.buffer.size": str(4 << 20),
        # A broker that restarts is fenced until the session of its last run expires (by default after 9 s).
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # The first consumer of a group does not wait for others, and a rebalance takes one heartbeat.
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
    }
    for kind in ("consumer", "share"):
        properties[f"group.{kind}.heartbeat.interval.ms"] = "500"
        properties[f"group.{kind}.min.heartbeat.interval.ms"] = "500"
        properties[f"group.{kind}.min.session.timeout.ms"] = "1000"
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{topic}.num.partitions"] = "4"
        properties[f"{topic}.replication.factor"] = replicas
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{topic}.min.isr"] = "1"
    return properties
