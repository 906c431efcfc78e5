"""ClusterView: what the proxy knows of a Kafka cluster at one moment; replaced whole."""

from typing import Final, final


@final
class Node:
    """A broker and its own address."""

    __slots__ = ("host", "node_id", "port")

    def __init__(self, node_id: int, host: str, port: int) -> None:
        self.node_id: Final = node_id
        self.host: Final = host
        self.port: Final = port


@final
class Partition:
    """Where a partition's replicas are, and which of them are in sync."""

    __slots__ = ("isr", "leader", "replicas")

    def __init__(self, leader: int, replicas: tuple[int, ...], isr: frozenset[int]) -> None:
        self.leader: Final = leader
        """Node id; -1 where there is none."""
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
        """Not to be changed. Empty where nobody wanted them."""
        self.has_partitions: Final = partitions is not None
        """Whether `partitions` is the whole cluster, so that what it lacks does not exist."""
        self.as_of: Final = as_of
        """When the cluster was asked, on the clock of `now`."""

    def topic_name(self, topic_id: bytes) -> str:
        """The name of the topic with this id; empty where no topic has it, or none that is known yet."""
        return self._topic_names.get(topic_id, "")


NOTHING_KNOWN: Final = ClusterView("", {}, {})
