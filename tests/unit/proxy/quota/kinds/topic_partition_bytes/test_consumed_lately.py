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
    lately.consumed(WHO, A, 0.0)
    assert lately.buckets(OTHER, 0.0) is None
    assert lately.buckets(WHO, 0.0) == [A]


def test_unlimited_partitions_bound_nothing():
    lately = ConsumedLately()
    lately.consumed(WHO, None, 0.0)
    assert lately.buckets(WHO, 0.0) == []


def test_use_before_the_window_does_not_count():
    lately = ConsumedLately()
    lately.consumed(WHO, A, 0.0)
    lately.consumed(WHO, B, 10.0)
    assert lately.buckets(WHO, LATELY_SECONDS - 0.1) == [A, B]
    assert lately.buckets(WHO, LATELY_SECONDS) == [B]
    assert lately.buckets(WHO, LATELY_SECONDS + 10.0) is None


def test_connections_without_records_are_forgotten():
    lately = ConsumedLately()
    lately.consumed(WHO, A, 0.0)
    lately.consumed(OTHER, A, 30.0)
    lately.forget(LATELY_SECONDS)
    assert lately.buckets(WHO, 1.0) is None
    assert lately.buckets(OTHER, LATELY_SECONDS) == [A]
