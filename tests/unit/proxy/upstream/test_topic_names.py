"""Topic names, requested when a client sends an unknown id."""

from proxy.quota.cluster_view import ClusterView
from proxy.upstream import topic_names
from proxy.upstream.topic_names import ClusterTopicNames
from proxy.wire.topic_names import ASKED_AT_MOST

ID = bytes(15) + b"\x01"


class Cluster:
    """A refresh that knows what the test says."""

    def __init__(self):
        self.names = {}
        self.view = ClusterView("", {}, self.names)
        self.wanted = []
        self.all_wanted = 0
        self.responds = True
        self.may_ask = True
        self.requests, self.responses = 7, 6
        self.hidden = set()

    def awaits_name(self, topic_id):
        return False

    def want_names(self, topic_ids):
        self.wanted.extend(topic_ids)

    def want_all_names(self):
        self.all_wanted += 1

    def hides(self, topic_id):
        return topic_id in self.hidden


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


def test_names_are_requested_as_the_cluster_says():
    cluster = Cluster()
    cluster.hidden.add(ID)
    names = ClusterTopicNames(cluster, lambda seconds, call: None)
    assert (names.asks, names.requests, names.responses) == (True, 7, 6)
    assert (names.hides(ID), names.hides(bytes(16))) == (True, False)
    cluster.may_ask = False
    assert not names.asks


def test_for_many_unknown_ids_all_names_are_requested_once_a_second():
    cluster, timers = Cluster(), []
    names = ClusterTopicNames(cluster, lambda seconds, call: timers.append(call))

    def flood(first):
        for number in range(first, first + 10 * ASKED_AT_MOST):
            names.name(number.to_bytes(16, "big"))
            if names.any_wanted:
                names.ask()

    flood(1)
    flood(100_000)
    assert (len(cluster.wanted), cluster.all_wanted, len(timers)) == (ASKED_AT_MOST, 1, 1)
    assert len(names._asked) == ASKED_AT_MOST
    timers.pop()()
    assert (cluster.all_wanted, len(timers)) == (2, 1), "the second flood has come after the first request"
    timers.pop()()
    assert (cluster.all_wanted, timers, names.any_wanted) == (2, [], False)


def test_an_id_beyond_those_that_are_requested_is_awaited():
    cluster = Cluster()
    names = ClusterTopicNames(cluster, lambda seconds, call: None)
    for number in range(1, ASKED_AT_MOST + 2):
        names.name(number.to_bytes(16, "big"))
    assert names.awaits((ASKED_AT_MOST + 1).to_bytes(16, "big"))
    names.ask()
    assert not names.awaits((ASKED_AT_MOST + 1).to_bytes(16, "big")), "from now on the cluster says it"
