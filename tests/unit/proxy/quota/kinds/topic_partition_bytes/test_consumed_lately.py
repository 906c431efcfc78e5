"""Which limited partitions a connection's responses have brought."""

from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.consumed_lately import LATELY_SECONDS, ConsumedLately
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule

WHO = Identity("u", "c", "127.0.0.1")
OTHER = Identity("u", "c", "127.0.0.1")
A, B = (
    Bucket(quota="q", limit=1.0, rule=RateRule(burst_seconds=1.0), now=0.0, topic=name, partition=0)
    for name in "ab"
)


def test_a_connection_without_records_is_unknown():
    lately = ConsumedLately()
    lately.consumer(WHO, 0.0).got(A, 0.0)
    assert lately.buckets(OTHER, 0.0) is None
    assert lately.buckets(WHO, 0.0) == [A]


def test_unlimited_partitions_bound_nothing():
    lately = ConsumedLately()
    lately.consumer(WHO, 0.0)
    assert lately.buckets(WHO, 0.0) == []


def test_use_before_the_window_does_not_count():
    lately = ConsumedLately()
    lately.consumer(WHO, 0.0).got(A, 0.0)
    lately.consumer(WHO, 10.0).got(B, 10.0)
    assert lately.buckets(WHO, LATELY_SECONDS - 0.1) == [A, B]
    assert lately.buckets(WHO, LATELY_SECONDS) == [B]
    assert lately.buckets(WHO, LATELY_SECONDS + 10.0) is None


def test_connections_without_records_are_forgotten():
    lately = ConsumedLately()
    lately.consumer(WHO, 0.0).got(A, 0.0)
    lately.consumer(OTHER, 30.0).got(A, 30.0)
    lately.forget(LATELY_SECONDS)
    assert lately.buckets(WHO, 1.0) is None
    assert lately.buckets(OTHER, LATELY_SECONDS) == [A]


def test_partitions_come_in_any_order_and_number():
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
