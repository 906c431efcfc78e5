import pytest

from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.resources import DEFAULT_RESOURCE, NO_RESOURCES, Resources
from proxy.quota.limits.topic_limits import internal, topic_limit

KEY = PRODUCER_BYTE_RATE.name
ALL = Resources({DEFAULT_RESOURCE: {KEY: "50"}, "orders": {KEY: "1000"}})
INTERNAL = ["__consumer_offsets", "__transaction_state", "__share_group_state", "__quota_proxy_usage"]


@pytest.mark.parametrize(("topic", "limit"), [("others", 50), ("orders", 1000), ("__mine", 50)])
def test_a_topic_has_its_own_limit_or_the_default(topic, limit):
    assert topic_limit(ALL, topic, PRODUCER_BYTE_RATE) == limit
    assert topic_limit(NO_RESOURCES, topic, PRODUCER_BYTE_RATE) == UNLIMITED
    assert not internal(topic)


@pytest.mark.parametrize("topic", INTERNAL)
def test_an_internal_topic_has_only_its_own_limit(topic):
    assert internal(topic)
    assert topic_limit(ALL, topic, PRODUCER_BYTE_RATE) == UNLIMITED
    assert topic_limit(Resources({topic: {KEY: "7"}}), topic, PRODUCER_BYTE_RATE) == 7
