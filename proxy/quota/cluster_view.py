"""ClusterView: an immutable snapshot of a Kafka cluster's metadata."""

from typing import Final, final


@final
class Node:
    """A broker and the address of its own listener."""

    __slots__ = ("host", "node_id", "port")

    def __init__(self, node_id: int, host: str, port: int) -> None:
        self.node_id: Final = node_id
        self.host: Final = host
        self.port: Final = port


@final
class Partition:
    """A partition's leader, replicas and in-sync replicas, as node ids."""

    __slots__ = ("isr", "leader", "replicas")

    def __init__(self, leader: int, replicas: tuple[int, ...], isr: frozenset[int]) -> None:
        self.leader: Final = leader
        """-1 if there is none."""
        self.replicas: Final = replicas
        self.isr: Final = isr


@final
class ClusterView:
    """Brokers by node id, topic names by topic id (KIP-516), and partitions by topic and number."""

    def __init__(
        self,
        cluster_id: str,
        nodes: dict[int, Node],
        topic_names: dict[bytes, str],
        partitions: dict[tuple[str, int], Partition] | None = None,
        as_of: float = 0.0,
    ) -> None:
        self.cluster_id: Final = cluster_id
        self.nodes: Final = nodes
        self._topic_names: Final = topic_names
        self.partitions: Final[dict[tuple[str, int], Partition]] = {} if partitions is None else partitions
        """Read-only. Empty if no quota wants partitions."""
        self.has_partitions: Final = partitions is not None
        """Whether `partitions` has every partition of the cluster."""
        self.as_of: Final = as_of
        """When the metadata was requested, on the clock of `now`."""

    def topic_name(self, topic_id: bytes) -> str:
        """The name of the topic with this id; empty if it is unknown."""
        return self._topic_names.get(topic_id, "")


NOTHING_KNOWN: Final = ClusterView("", {}, {})
