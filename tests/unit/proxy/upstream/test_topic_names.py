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
        self.responds = True

    def awaits_name(self, topic_id):
        return False

    def want_names(self, topic_ids):
        self.wanted.extend(topic_ids)


def test_unknown_id_is_requested_once_a_second():
    cluster, timers = Cluster(), []
    names = ClusterTopicNames(cluster, lambda seconds, call: timers.append((seconds, call)))
    assert [names.name(ID), names.name(ID)] == ["", ""]
    names.ask()
    assert cluster.wanted == [ID]
    assert names.name(ID) == ""
    assert names.wanted == set()
    [(seconds, ask_again)] = timers
    assert seconds == topic_names.ASK_AGAIN_SECONDS
    ask_again()
    assert names.name(ID) == ""
    names.ask()
    assert (cluster.wanted, len(timers)) == ([ID, ID], 2)
    cluster.names[ID] = "orders"
    assert names.name(ID) == "orders"


def test_a_name_is_awaited_from_when_it_is_wanted():
    cluster = Cluster()
    names = ClusterTopicNames(cluster, lambda seconds, call: None)
    assert not names.awaits(ID)
    names.name(ID)
    assert names.awaits(ID)
    cluster.responds = False
    assert not names.awaits(ID)
    cluster.responds = True
    names.ask()
    assert not names.awaits(ID), "from now on the cluster says it"
