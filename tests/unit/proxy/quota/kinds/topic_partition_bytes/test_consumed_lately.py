"""Which limited partitions a connection's responses have brought."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.buckets import DROPPED, LimitedPartition, PartitionBuckets
from proxy.quota.kinds.topic_partition_bytes.consumed_lately import (
    CONNECTIONS_AT_MOST,
    LATELY_SECONDS,
    ConsumedLately,
)
from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE, CONSUMER_BYTE_RATE_ACTION, OMIT, THROTTLE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.verdict import ALLOW
from proxy.wire.cursor import NO_ID, NO_PARTITION
from proxy.wire.views import Item

RULE = RateRule(burst_seconds=1.0)
OWNER = PartitionBuckets(CONSUMER_BYTE_RATE, CONSUMER_BYTE_RATE_ACTION, RULE)

WHO = Identity("u", "c", "127.0.0.1")
OTHER = Identity("u", "c", "127.0.0.1")
A, B = (
    Bucket(quota="q", limit=1.0, rule=RateRule(burst_seconds=1.0), now=0.0, topic=name, partition=0)
    for name in "ab"
)


def test_a_connection_without_records_is_unknown() -> None:
    lately = ConsumedLately()
    lately.consumer(WHO, 0.0).got(A, 0.0)
    assert lately.buckets(OTHER, 0.0) is None
    assert lately.buckets(WHO, 0.0) == [A]


def test_unlimited_partitions_bound_nothing() -> None:
    lately = ConsumedLately()
    lately.consumer(WHO, 0.0)
    assert lately.buckets(WHO, 0.0) == []


def test_use_before_the_window_does_not_count() -> None:
    lately = ConsumedLately()
    lately.consumer(WHO, 0.0).got(A, 0.0)
    lately.consumer(WHO, 10.0).got(B, 10.0)
    assert lately.buckets(WHO, LATELY_SECONDS - 0.1) == [A, B]
    assert lately.buckets(WHO, LATELY_SECONDS) == [B]
    assert lately.buckets(WHO, LATELY_SECONDS + 10.0) is None


def test_connections_without_records_are_forgotten() -> None:
    lately = ConsumedLately()
    lately.consumer(WHO, 0.0).got(A, 0.0)
    lately.consumer(OTHER, 30.0).got(A, 30.0)
    lately.forget(LATELY_SECONDS)
    assert lately.buckets(WHO, 1.0) is None
    assert lately.buckets(OTHER, LATELY_SECONDS) == [A]


def test_the_connections_are_bounded() -> None:
    lately = ConsumedLately()
    lately.consumer(WHO, 0.0).got(A, 0.0)
    for _ in range(CONNECTIONS_AT_MOST):
        last = Identity("u", "c", "127.0.0.1")
        lately.consumer(last, 0.0)
    assert lately.known(WHO) is None
    assert lately.known(last) is not None


def test_partitions_come_in_any_order_and_number() -> None:
    lately = ConsumedLately()
    buckets = [
        Bucket(quota="q", limit=1.0, rule=RateRule(burst_seconds=1.0), now=0.0, topic="t", partition=number)
        for number in range(4)
    ]
    responses = [(0, 1, 2), (0, 1, 2), (2, 0), (3, 1), (1, 1, 3), (0,)]
    for at, places in enumerate(responses):
        consumer = lately.consumer(WHO, float(at))
        for place in places:
            consumer.got(buckets[place], float(at))
    assert lately.buckets(WHO, 5.0) == buckets
    # Last used at 5, 4, 2 and 4.
    assert lately.buckets(WHO, LATELY_SECONDS + 3.0) == [buckets[0], buckets[1], buckets[3]]
    lately.consumer(WHO, 61.0).got(buckets[3], 61.0)
    assert lately.buckets(WHO, LATELY_SECONDS + 4.0) == [buckets[0], buckets[3]]


def limited(partition: int, topic: str = "t") -> LimitedPartition:
    bucket = Bucket(quota="q", limit=1.0, rule=RULE, now=0.0, topic=topic, partition=partition)
    return LimitedPartition(OWNER, bucket, THROTTLE)


def of(partition: int, topic: str = "t") -> Item:
    return Item(topic, NO_ID, partition, 100)


def test_partitions_that_come_in_their_order_are_known() -> None:
    partitions = [limited(0), limited(1), limited(0, "u")]
    consumer = ConsumedLately().consumer(WHO, 0.0)
    assert (consumer.knows([], 0), consumer.knows([of(0)], 0)) == (True, False)
    for each in partitions:
        consumer.got(each.bucket, 0.0, each)
    items = [of(0), of(1), of(0, "u")]
    assert [consumer.knows(items, count) for count in (3, 2, 0)] == [True, False, False]
    assert not consumer.knows([of(0), of(0, "u"), of(1)], 3)
    assert not consumer.knows([of(0), of(1, "u")], 3)
    assert consumer.knows([*items, *items], 3)
    consumer.got(partitions[1].bucket, 0.0, partitions[1])
    assert consumer.knows([items[2], items[0]], 3)
    assert not consumer.knows(items, 3)


def test_known_partitions_are_charged_in_their_order() -> None:
    partitions = [limited(0), limited(1), limited(0, "u")]
    lately = ConsumedLately()
    consumer = lately.consumer(WHO, 0.0)
    for each in partitions:
        consumer.got(each.bucket, 0.0, each)
    assert consumer.charge_known([], WHO, 50.0) is ALLOW
    consumer.got(partitions[1].bucket, 0.0, partitions[1])
    verdict = consumer.charge_known([of(0, "u"), of(0)], WHO, 50.0)
    assert [each.bucket.used for each in partitions] == [100.0, 0.0, 100.0]
    assert (verdict.bucket, verdict.throttle_seconds) == (partitions[2].bucket, 99.0)
    assert consumer.knows([of(1)], 3)
    assert lately.buckets(WHO, LATELY_SECONDS + 1.0) == [partitions[0].bucket, partitions[2].bucket]


@pytest.mark.parametrize("change", ["dropped", "omitted", "unlimited", "shared"])
def test_partitions_whose_limit_or_bucket_has_changed_are_looked_up(change: str) -> None:
    partition = limited(NO_PARTITION if change == "shared" else 0)
    consumer = ConsumedLately().consumer(WHO, 0.0)
    consumer.got(partition.bucket, 0.0, partition)
    assert consumer.knows([of(0)], 1) == (change != "shared")
    if change == "dropped":
        partition.partition = DROPPED
    elif change == "omitted":
        partition.act(OMIT)
    elif change == "unlimited":
        partition.bucket.configure(UNLIMITED, RULE, 0.0)
    consumer.review(1)
    assert not consumer.knows([of(0)], 1)
