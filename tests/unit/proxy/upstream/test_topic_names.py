"""Topic names, requested when a client sends an unknown id."""

from proxy.quota.cluster_view import ClusterView
from proxy.upstream import topic_names
from proxy.upstream.topic_names import ClusterTopicNames

ID = bytes(15) + b"\x01"


class Cluster:
    """A refresh that knows what the test says."""

    def __init__(self):
        self.names = {}
        self.view = ClusterView("", {}, self.names)
        self.wanted = []

    def want_names(self, topic_ids):
        self.wanted.extend(topic_ids)


def test_unknown_id_is_requested_once_a_second():
    cluster, now = Cluster(), [10.0]
    names = ClusterTopicNames(cluster, lambda: now[0])
    assert [names.name(ID), names.name(ID)] == ["", ""]
    assert cluster.wanted == [ID]
    now[0] += topic_names.ASK_AGAIN_SECONDS
    assert names.name(ID) == ""
    assert cluster.wanted == [ID, ID]
    cluster.names[ID] = "orders"
    assert names.name(ID) == "orders"


def test_number_of_requested_ids_is_bounded():
    cluster = Cluster()
    names = ClusterTopicNames(cluster, lambda: 0.0)
    for number in range(topic_names.ASKED_AT_MOST + 500):
        names.name(number.to_bytes(16, "big"))
    assert len(cluster.wanted) == topic_names.ASKED_AT_MOST
