"""Topic names, requested when a client sends an unknown id."""

from typing import Any, cast

from proxy.quota.cluster_view import ClusterView
from proxy.upstream import topic_names
from proxy.upstream.topic_names import ClusterTopicNames
from proxy.wire.topic_names import ASKED_AT_MOST

ID = bytes(15) + b"\x01"


def name(names: ClusterTopicNames, topic_id: bytes, client: int = 0) -> str:
    """The name, as far as it is known; else the id becomes wanted."""
    known = names.known_name(topic_id)
    if not known and not names.asked(topic_id):
        names.want(topic_id, (str(client), ""))
    return known


class Cluster:
    """A refresh that knows what the test says."""

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}
        self.view = ClusterView("", {}, self.names)
        self.wanted: list[bytes] = []
        self.all_wanted = 0
        self.responds = True
        self.may_ask = True
        self.requests, self.responses = 7, 6
        self.hidden: set[bytes] = set()

    def awaits_name(self, topic_id: bytes) -> bool:
        return False

    def want_names(self, topic_ids: set[bytes]) -> None:
        self.wanted.extend(topic_ids)

    def want_all_names(self) -> None:
        self.all_wanted += 1

    def hides(self, topic_id: bytes) -> bool:
        return topic_id in self.hidden


def test_unknown_id_is_requested_once_a_second() -> None:
    cluster, timers = Cluster(), []
    names = ClusterTopicNames(cast("Any", cluster), lambda seconds, call: timers.append((seconds, call)))
    assert [name(names, ID), name(names, ID)] == ["", ""]
    names.ask()
    assert cluster.wanted == [ID]
    assert name(names, ID) == ""
    assert names.wanted == set()
    [(seconds, ask_again)] = timers
    assert seconds == topic_names.ASK_AGAIN_SECONDS
    ask_again()
    assert name(names, ID) == ""
    names.ask()
    assert (cluster.wanted, len(timers)) == ([ID, ID], 2)
    cluster.names[ID] = "orders"
    assert name(names, ID) == "orders"


def test_a_name_is_awaited_from_when_it_is_wanted() -> None:
    cluster = Cluster()
    names = ClusterTopicNames(cast("Any", cluster), lambda seconds, call: None)
    assert not names.awaits(ID)
    name(names, ID)
    assert names.awaits(ID)
    cluster.responds = False
    assert not names.awaits(ID)
    cluster.responds = True
    names.ask()
    assert not names.awaits(ID), "from now on the cluster says it"


def test_names_are_requested_as_the_cluster_says() -> None:
    cluster = Cluster()
    cluster.hidden.add(ID)
    names = ClusterTopicNames(cast("Any", cluster), lambda seconds, call: None)
    assert (names.asks, names.requests, names.responses) == (True, 7, 6)
    assert (names.hides(ID), names.hides(bytes(16))) == (True, False)
    cluster.may_ask = False
    assert not names.asks


def test_for_many_unknown_ids_all_names_are_requested_once_a_second() -> None:
    cluster, timers = Cluster(), []
    names = ClusterTopicNames(cast("Any", cluster), lambda seconds, call: timers.append(call))

    def flood(first: int) -> None:
        for number in range(first, first + 10 * ASKED_AT_MOST):
            name(names, number.to_bytes(16, "big"), number)
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


def test_an_id_beyond_those_that_are_requested_is_awaited() -> None:
    cluster = Cluster()
    names = ClusterTopicNames(cast("Any", cluster), lambda seconds, call: None)
    for number in range(1, ASKED_AT_MOST + 2):
        name(names, number.to_bytes(16, "big"))
    assert names.awaits((ASKED_AT_MOST + 1).to_bytes(16, "big"))
    names.ask()
    assert not names.awaits((ASKED_AT_MOST + 1).to_bytes(16, "big")), "from now on the cluster says it"
