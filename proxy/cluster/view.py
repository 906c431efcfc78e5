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
class ClusterView:
    """Brokers by node id, and topic names by topic id (KIP-516)."""

    def __init__(self, cluster_id: str, nodes: dict[int, Node], topic_names: dict[bytes, str]) -> None:
        self.cluster_id: Final = cluster_id
        self.nodes: Final = nodes
        self._topic_names: Final = topic_names

    def topic_name(self, topic_id: bytes) -> str:
        """The name of the topic with this id; empty where no topic has it, or none that is known yet."""
        return self._topic_names.get(topic_id, "")


NOTHING_KNOWN: Final = ClusterView("", {}, {})
