import pytest

from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, NO_RESOURCES, TOPIC, Resources
from proxy.quota.limits.topic_limits import internal, topic_limit

KEY = PRODUCER_BYTE_RATE.name
ALL = Resources({DEFAULT_RESOURCE: {KEY: "50"}, "orders": {KEY: "1000"}})
INTERNAL = ["__consumer_offsets", "__transaction_state", "__share_group_state", "ours"]
SEEMING = ["__quota_proxy_mine", "__consumer_offsets2", "__quota_proxy_", "_ours"]


def resources(topics: dict[str, dict[str, str]]) -> Resources:
    return Resources(topics, proxy_topics=frozenset(["ours"]))


@pytest.mark.parametrize(("topic", "limit"), [("others", 50), ("orders", 1000), ("__mine", 50)])
def test_a_topic_has_its_own_limit_or_the_default(topic: str, limit: int) -> None:
    assert topic_limit(ALL, topic, PRODUCER_BYTE_RATE) == limit
    assert topic_limit(NO_RESOURCES, topic, PRODUCER_BYTE_RATE) == UNLIMITED
    assert not internal(ALL, topic)


@pytest.mark.parametrize("topic", SEEMING)
def test_a_name_that_begins_like_an_internal_topics_has_the_default(topic: str) -> None:
    everywhere = resources(ALL.topics)
    assert not internal(everywhere, topic)
    assert topic_limit(everywhere, topic, PRODUCER_BYTE_RATE) == 50


@pytest.mark.parametrize("topic", INTERNAL)
def test_an_internal_topic_has_only_its_own_limit(topic: str) -> None:
    everywhere = resources(ALL.topics)
    assert internal(everywhere, topic)
    assert topic_limit(everywhere, topic, PRODUCER_BYTE_RATE) == UNLIMITED
    assert topic_limit(resources({topic: {KEY: "7"}}), topic, PRODUCER_BYTE_RATE) == 7


def test_a_change_keeps_the_proxys_topics() -> None:
    for kind in (TOPIC, BROKER):
        changed = resources(ALL.topics).with_changes(kind, {"7": {KEY: "1"}})
        assert internal(changed, "ours")
