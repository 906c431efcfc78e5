"""ClusterView: what a snapshot of a cluster's metadata has; test_refresh.py has real ones."""

from proxy.quota.cluster_view import NOTHING_KNOWN, ClusterView
from proxy.wire.addresses import BrokerAddress

ID = bytes(range(16))


def test_topics_are_found_by_id() -> None:
    view = ClusterView("c", {}, {ID: "orders"})
    assert view.topic_name(ID) == "orders"
    assert view.topic_name(bytes(16)) == ""


def test_a_cluster_without_partitions_differs_from_one_that_was_not_asked_for_them() -> None:
    asked = ClusterView("c", {}, {}, {})
    assert asked.has_partitions
    assert asked.leaders == {}
    assert not ClusterView("c", {}, {}).has_partitions
    assert ClusterView("c", {}, {}).leaders == {}


def test_the_parts_of_a_view() -> None:
    view = ClusterView("c", {1: BrokerAddress(1, "b", 9092)}, {}, {("orders", 0): 1})
    assert (view.cluster_id, view.nodes[1].host, view.nodes[1].port) == ("c", "b", 9092)
    assert view.leaders == {("orders", 0): 1}
    assert NOTHING_KNOWN.nodes == {}
