import pytest

from proxy.quota.kinds.replication.throttled_replicas import METADATA_TOPIC, ThrottledReplicas
from proxy.quota.limits.resources import Resources

LEADER = "leader.replication.throttled.replicas"
FOLLOWER = "follower.replication.throttled.replicas"
SWITCH = "leader.replication.throttled"


def of_leaders(
    topics: dict[str, dict[str, str]] | None = None, brokers: dict[str, dict[str, str]] | None = None
) -> ThrottledReplicas:
    return ThrottledReplicas(Resources(topics, brokers), leader=True)


def test_an_entry_counts_at_its_broker() -> None:
    replicas = of_leaders({"t": {LEADER: "0:1,1:2"}})
    assert replicas.any
    covered = [(part, broker) for part in (0, 1, 2) for broker in (1, 2) if replicas.cover("t", part, broker)]
    assert covered == [(0, 1), (1, 2)]
    assert not replicas.cover("other", 0, 1)


def test_each_side_has_its_own_lists() -> None:
    resources = Resources({"t": {LEADER: "0:1", FOLLOWER: "0:2"}})
    assert not ThrottledReplicas(resources, leader=True).cover("t", 0, 2)
    assert ThrottledReplicas(resources, leader=False).cover("t", 0, 2)


def test_a_star_throttles_the_whole_topic() -> None:
    replicas = of_leaders({"t": {LEADER: "*"}})
    assert replicas.cover("t", 7, 9)
    assert not replicas.cover("u", 7, 9)


def test_default_is_for_topics_without_a_list() -> None:
    replicas = of_leaders({"<default>": {LEADER: "*"}, "t": {LEADER: "0:1"}, "none": {LEADER: ""}})
    assert replicas.cover("u", 7, 9)
    assert not replicas.cover("t", 7, 9)
    assert not replicas.cover("none", 0, 1)


@pytest.mark.parametrize("topics", [{}, {"t": {LEADER: ""}}, {"t": {FOLLOWER: "*"}}])
def test_nothing_is_throttled(topics: dict[str, dict[str, str]]) -> None:
    replicas = of_leaders(topics)
    assert not replicas.any
    assert not replicas.cover("t", 0, 1)


def test_a_switch_throttles_whatever_the_lists_say() -> None:
    replicas = of_leaders({"t": {LEADER: ""}}, {"2": {SWITCH: "true"}})
    assert replicas.any
    assert replicas.cover("t", 0, 2)
    assert replicas.cover("u", 5, 2)
    assert not replicas.cover("t", 0, 1)


def test_a_switch_of_all_brokers_and_one_that_is_excepted() -> None:
    replicas = of_leaders({"t": {LEADER: "0:2"}}, {"<default>": {SWITCH: "true"}, "2": {SWITCH: "false"}})
    assert replicas.cover("u", 5, 1)
    assert not replicas.cover("u", 5, 2)
    assert replicas.cover("t", 0, 2), "its list still holds"


def test_the_metadata_log_is_never_throttled() -> None:
    replicas = of_leaders({"<default>": {LEADER: "*"}}, {"<default>": {SWITCH: "true"}})
    assert not replicas.cover(METADATA_TOPIC, 0, 1)
