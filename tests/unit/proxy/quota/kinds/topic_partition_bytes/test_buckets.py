"""The buckets of a topic config, by topic and partition."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes import buckets as partition_buckets
from proxy.quota.kinds.topic_partition_bytes.buckets import (
    EXAMINED_AT_MOST,
    LimitedPartition,
    PartitionBuckets,
)
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, REJECT, THROTTLE
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.limits.resources import DEFAULT_RESOURCE, NO_RESOURCES, Resources
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.usage import REST
from tests.support.present import present
from tests.support.sharing.members import a_quarter

WHO = Identity("u", "c", "127.0.0.1")
RULE = RateRule(burst_seconds=1.0)
KEY = PRODUCER_BYTE_RATE.name
ACTION = PRODUCER_BYTE_RATE_ACTION.name
ORDERS = Resources({"orders": {KEY: "1000"}})
ALL = Resources({DEFAULT_RESOURCE: {KEY: "50"}, "orders": {KEY: "1000", ACTION: REJECT}})


def buckets(resources: Resources = ORDERS, now: float = 0.0) -> PartitionBuckets:
    made = PartitionBuckets(PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, RULE)
    made.configure(resources, RULE, now)
    return made


def shown(made: PartitionBuckets) -> list[tuple[str, int, float]]:
    return sorted((bucket.topic, bucket.partition, bucket.limit) for bucket in made.live())


def test_each_partition_has_the_topics_rate_for_itself() -> None:
    made = buckets()
    one, other = made.find("orders", 0, 0.0), made.find("orders", 1, 0.0)
    assert one is not other
    assert made.find("orders", 0, 0.0) is one
    assert shown(made) == [("orders", 0, 1000.0), ("orders", 1, 1000.0)]


def test_a_topic_without_a_limit_has_no_bucket() -> None:
    made = buckets()
    assert made.find("others", 0, 0.0) is None
    assert made.find("others", 0, 0.0) is None
    assert made.live() == []
    assert buckets(NO_RESOURCES).any is False


def test_the_action_is_the_topics_own() -> None:
    made = buckets(ALL)
    assert present(made.find("orders", 0, 0.0)).action == REJECT
    assert present(made.find("others", 0, 0.0)).action == THROTTLE
    assert made.acts(REJECT)
    assert not buckets().acts(REJECT)


def test_a_change_applies_at_once_and_keeps_the_history() -> None:
    made = buckets(ALL)
    bucket = present(made.find("orders", 0, 0.0)).bucket
    bucket.record(3000, 0.0)
    made.find("others", 3, 0.0)
    made.configure(Resources({"orders": {KEY: "500"}}), RULE, 0.0)
    assert present(made.find("orders", 0, 0.0)).bucket is bucket
    assert present(made.find("orders", 0, 0.0)).action == THROTTLE
    assert bucket.record(0, 0.0) == pytest.approx(4.0)
    assert shown(made) == [("orders", 0, 500.0)]
    assert made.find("others", 3, 0.0) is None
    made.configure(NO_RESOURCES, RULE, 0.0)
    assert (made.any, made.find("orders", 0, 0.0), made.live()) == (False, None, [])
    made.configure(ORDERS, RULE, 0.0)
    assert present(made.find("orders", 0, 0.0)).bucket is bucket


def test_a_topic_that_gets_a_limit_later_has_one() -> None:
    made = buckets(NO_RESOURCES)
    assert made.find("orders", 0, 0.0) is None
    made.configure(ORDERS, RULE, 0.0)
    assert present(made.find("orders", 0, 0.0)).bucket.limit == 1000


def test_a_new_rule_reaches_every_bucket() -> None:
    made = buckets()
    bucket = present(made.find("orders", 0, 0.0)).bucket
    made.configure(ORDERS, RateRule(burst_seconds=1.0, mode=OBSERVE), 0.0)
    assert bucket.observed
    assert made.observed


def test_the_lowest_limit_is_known() -> None:
    assert buckets(ALL).least_limit == 50
    assert buckets(NO_RESOURCES).least_limit == UNLIMITED


def test_too_many_partitions_share_one_bucket() -> None:
    made = buckets(ALL)
    for partition in range(partition_buckets.PARTITIONS_AT_MOST):
        made.find("orders", partition, 0.0)
    one = present(made.find("made-up", 0, 0.0))
    assert one is made.find("orders", -5, 0.0)
    assert one is made.used("orders", -5), "what was charged to it can be given back"
    assert (one.bucket.topic, one.bucket.limit) == (REST, 50)
    made.configure(ORDERS, RULE, 0.0)
    assert one.bucket.limit == 1000


def test_the_remembered_topics_without_a_limit_are_bounded() -> None:
    made = buckets()
    for number in range(partition_buckets.UNLIMITED_AT_MOST + 1):
        made.find(f"made-up {number}", 0, 0.0)
    assert len(made._unlimited) == 1


def test_buckets_that_owe_nothing_make_room() -> None:
    made = buckets(ALL)
    present(made.find("orders", 0, 0.0)).bucket.record(1_000_000, 0.0)
    for partition in range(1, partition_buckets.PARTITIONS_AT_MOST):
        made.find("orders", partition, 0.0)
    assert present(made.find("orders", -1, partition_buckets.DROP_SECONDS * 0.5)).bucket.topic == REST
    assert present(made.find("late", 0, partition_buckets.DROP_SECONDS)).bucket.topic == REST, (
        "it has just been tried"
    )
    assert present(made.find("late", 0, partition_buckets.DROP_SECONDS * 1.5)).bucket.topic == "late"
    assert made.used("orders", 0) is not None, "it owes something"
    assert made.used("orders", 1) is None


def test_a_bucket_that_lacks_tokens_is_not_dropped_to_be_made_again_with_all_of_them() -> None:
    made = buckets(ALL)
    present(made.find("orders", 0, 0.0)).bucket.record(900, 0.0)
    present(made.find("others", 0, 0.0)).bucket.record(100, 0.0)
    for partition in range(partition_buckets.PARTITIONS_AT_MOST - 2):
        present(made.find("made-up", partition, 0.0)).bucket.record(1, 0.0)
    made.find("late", 0, 1.0)
    assert made.used("others", 0) is not None
    assert made.used("made-up", 0) is None


def test_a_bucket_to_which_only_rejected_records_were_charged_is_dropped() -> None:
    made = buckets()
    for partition, kept in ((0, 0), (1, 500)):
        present(made.find("orders", partition, 0.0)).bucket.record(2000 + kept, 0.0)
        made.give_back("orders", partition, 2000, 0.0, WHO, False)
    assert made.used("orders", 0) is None
    assert present(present(made.used("orders", 1)).bucket.tokens).measure(0.0) == 500.0
    present(made.find("orders", 2, 0.0)).bucket.record(10, 0.0)
    made.give_back("orders", 2, 10, 0.0, WHO, True)
    assert made.used("orders", 2) is not None, "the partition exists"
    made.give_back("others", 0, 10, 0.0, WHO, True)
    assert made.used("others", 0) is None


def test_idle_state_is_dropped() -> None:
    made = buckets()
    made.find("orders", 0, 0.0)
    made.find("orders", 1, 10.0)
    made.forget_idle(3600.0)
    assert shown(made) == [("orders", 1, 1000.0)]


def test_only_some_buckets_are_examined_at_a_time() -> None:
    """Clients can name 100,000 partitions: to drop all of them took 25 ms."""
    made = buckets()
    for partition in range(2 * EXAMINED_AT_MOST + 5):
        made.find("orders", partition, 0.0)
    assert made.forget_idle(3600.0)
    assert len(made.live()) == EXAMINED_AT_MOST + 5
    made.find("orders", 2 * EXAMINED_AT_MOST + 4, 3600.0)
    assert made.forget_idle(3600.0)
    assert not made.forget_idle(3600.0)
    assert shown(made) == [("orders", 2 * EXAMINED_AT_MOST + 4, 1000.0)]


def test_a_bucket_that_is_dropped_before_it_is_examined() -> None:
    made = buckets(ALL)
    for partition in range(EXAMINED_AT_MOST + 1):
        present(made.find("orders", partition, 0.0)).bucket.record(2000, 0.0)
    assert made.forget_idle(3600.0)
    made.give_back("orders", 0, 2000, 3600.0, WHO, False)
    assert made.live() == []
    assert not made.forget_idle(3600.0)


def test_partitions_are_found_in_any_order_also_after_some_were_dropped() -> None:
    made = buckets(ALL)
    messages = [
        ("orders", [0, 1, 2]),
        ("orders", [0, 1, 2]),
        ("others", [2, 1]),
        ("orders", [2, 0, 2, 2, 1]),
        ("orders", [5, 0]),
    ]
    found: dict[tuple[str, int], LimitedPartition] = {}
    for topic, partitions in messages * 2:
        for partition in partitions:
            limited = present(made.find(topic, partition, 0.0))
            assert found.setdefault((topic, partition), limited) is limited
            assert (limited.bucket.topic, limited.bucket.partition) == (topic, partition)
    assert len(set(found.values())) == 6
    present(made.find("orders", 1, 0.0)).bucket.record(1, 3599.0)
    made.forget_idle(3600.0)
    assert shown(made) == [("orders", 1, 1000.0)]
    for (topic, partition), limited in found.items():
        again = present(made.find(topic, partition, 3600.0))
        assert (again is limited) == ((topic, partition) == ("orders", 1))
        assert (again.bucket.topic, again.bucket.partition) == (topic, partition)


def test_a_client_cannot_name_a_dropped_partition() -> None:
    made = buckets()
    one = made.find("orders", 0, 0.0)
    made.find("orders", 1, 0.0)
    made.find("orders", 0, 0.0)
    made.forget_idle(3600.0)
    for partition in range(-3, 3):
        assert made.used("orders", partition) is None
    assert made.find("orders", -2, 3600.0) is not one


@pytest.mark.parametrize("whole_topics", [False, True])
def test_a_new_bucket_begins_with_its_part_of_a_shared_limit(whole_topics: bool) -> None:
    made = PartitionBuckets(PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, RULE, whole_topics=whole_topics)
    made.configure(ORDERS, RULE, 0.0)
    made.first_parts = a_quarter()
    bucket = present(made.find("orders", 0, 0.0)).bucket
    assert (bucket.limit, bucket.whole_limit) == (250.0, 1000.0)
    assert bucket.record(1000.0, 0.0) == pytest.approx(3.0), "its first burst is a part, too"


def test_an_observed_bucket_has_the_whole_limit() -> None:
    rule = RateRule(burst_seconds=1.0, mode=OBSERVE)
    made = PartitionBuckets(PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, rule)
    made.configure(ORDERS, rule, 0.0)
    made.first_parts = a_quarter()
    assert present(made.find("orders", 0, 0.0)).bucket.limit == 1000.0
