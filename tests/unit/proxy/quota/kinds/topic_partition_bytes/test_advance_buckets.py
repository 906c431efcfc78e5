"""AdvanceBuckets: the limit of a user before its records are charged to the topic."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.advance_buckets import BUCKETS_AT_MOST, AdvanceBuckets
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.verdict import ALLOW

RULE = RateRule(burst_seconds=1.0)


def bucket(limit: float = 1000.0, partition: int = 0) -> Bucket:
    return Bucket(quota="q", limit=limit, rule=RULE, now=0.0, topic="a", partition=partition)


def connection(user: str = "alice") -> Identity:
    return Identity(user, "c", "127.0.0.1")


def test_each_user_has_the_limit_of_the_topic() -> None:
    advances = AdvanceBuckets()
    topic = bucket()
    assert advances.charge(topic, 1000, connection(), 0.0) is ALLOW
    assert advances.charge(topic, 1000, connection("mallory"), 0.0) is ALLOW
    assert advances.charge(topic, 500, connection(), 0.0).throttle_seconds == 0.5
    verdict = advances.charge(topic, 500, connection(), 0.0)
    assert verdict.throttle_seconds == 1.0
    assert verdict.ahead_seconds == 0.5
    assert topic.used == 0
    assert advances.charge(bucket(partition=1), 1000, connection(), 0.0) is ALLOW


@pytest.mark.parametrize(("used", "seconds"), [(300, 0.3), (5000, 1.0)])
def test_it_begins_with_what_the_topic_has_left(used: int, seconds: float) -> None:
    """The user neither has another burst nor pays the debts of others."""
    advances = AdvanceBuckets()
    topic = bucket()
    topic.record(float(used), 0.0, connection("alice"))
    assert advances.charge(topic, 1000, connection("bob"), 0.0).throttle_seconds == pytest.approx(seconds)


@pytest.mark.parametrize("used", [0, 8000])
def test_it_begins_with_the_rate_of_the_topic(used: int) -> None:
    advances = AdvanceBuckets()
    topic = Bucket(quota="q", limit=1000.0, rule=RateRule(), now=0.0, topic="a")
    topic.record(float(used), 0.0)
    waits = advances.charge(topic, 9000, connection(), 0.0).throttle_seconds > 0.0
    assert waits == (used > 0)


def test_what_is_given_back_is_no_debt() -> None:
    advances = AdvanceBuckets()
    topic = bucket()
    who = connection()
    advances.charge(topic, 5000, who, 0.0)
    advances.give_back(topic, 4500, who, 0.0)
    assert advances.charge(topic, 500, who, 0.0) is ALLOW
    advances.give_back(topic, 1000, who, 0.0)
    assert advances.count == 0
    advances.give_back(topic, 1000, who, 0.0)


@pytest.mark.parametrize("limit", [500.0, 2000.0])
def test_a_changed_limit_applies(limit: float) -> None:
    advances = AdvanceBuckets()
    topic = bucket()
    who = connection()
    advances.charge(topic, 2000, who, 0.0)
    topic.configure(limit, RULE, 0.0)
    verdict = advances.charge(topic, 1000, who, 0.0)
    assert verdict.throttle_seconds == pytest.approx(2000.0 / limit)


def test_they_are_bounded_and_forgotten() -> None:
    advances = AdvanceBuckets()
    for number in range(BUCKETS_AT_MOST + 10):
        advances.charge(bucket(), 1000 + number, connection(), 0.0)
    assert advances.count <= BUCKETS_AT_MOST
    advances.forget_idle(1.0)
    assert advances.count > 0
    advances.forget_idle(100.0)
    assert advances.count == 0
