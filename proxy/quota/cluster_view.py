"""ClusterView: an immutable snapshot of a Kafka cluster's metadata."""

from typing import Final, final

from proxy.wire.addresses import BrokerAddress


@final
class ClusterView:
    """Brokers by node id, topic names by topic id (KIP-516), and leaders by topic and partition."""

    def __init__(
        self,
        cluster_id: str,
        nodes: dict[int, BrokerAddress],
        topic_names: dict[bytes, str],
        leaders: dict[tuple[str, int], int] | None = None,
    ) -> None:
        self.cluster_id: Final = cluster_id
        self.nodes: Final = nodes
        self._topic_names: Final = topic_names
        self.leaders: Final[dict[tuple[str, int], int]] = {} if leaders is None else leaders
        """The node id of each partition's leader, -1 if there is none. Read-only. Empty if no quota needs the
        partitions.
        """
        self.has_partitions: Final = leaders is not None
        """Whether `leaders` has every partition of the cluster."""

    def topic_name(self, topic_id: bytes) -> str:
        """The name of the topic with this id; empty if it is unknown."""
        return self._topic_names.get(topic_id, "")


NOTHING_KNOWN: Final = ClusterView("", {}, {})
