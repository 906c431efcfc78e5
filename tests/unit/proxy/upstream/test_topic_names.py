"""Names of topics, asked for when a client sends an id that is not known."""

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


def test_an_unknown_id_is_asked_for_at_once_and_not_over_and_over():
    cluster, now = Cluster(), [10.0]
    names = ClusterTopicNames(cluster, lambda: now[0])
    assert [names.name(ID), names.name(ID)] == ["", ""]
    assert cluster.wanted == [ID]
    now[0] += topic_names.ASK_AGAIN_SECONDS
    assert names.name(ID) == ""
    assert cluster.wanted == [ID, ID]
    cluster.names[ID] = "orders"
    assert names.name(ID) == "orders"


def test_many_made_up_ids_are_not_all_asked_for():
    cluster = Cluster()
    names = ClusterTopicNames(cluster, lambda: 0.0)
    for number in range(topic_names.ASKED_AT_MOST + 500):
        names.name(number.to_bytes(16, "big"))
    assert len(cluster.wanted) == topic_names.ASKED_AT_MOST
