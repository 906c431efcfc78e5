"""The usage of buckets as a part of their limits."""

from prometheus_client.core import Metric

from proxy.quota.engines import ALL_BROKERS
from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.metrics.families.quota_usage import AT_A_TIME, FAMILY, quota_usage_steps
from proxy.telemetry.metrics.series import MAX_SERIES


def shown(*buckets: tuple[int, BucketState]) -> tuple[list[Metric | None], dict[str, int]]:
    excluded: dict[str, int] = {}
    return list(quota_usage_steps(buckets, excluded.__setitem__)), excluded


def test_a_bucket_has_all_its_names() -> None:
    [family], excluded = shown(
        (1, BucketState(quota="producer_byte_rate", user="alice", client_id="a,b", limit=10.0, rate=5.0)),
        (2, BucketState(quota="producer.byte.rate", topic="t", partition=0, limit=10.0, rate=20.0)),
        (ALL_BROKERS, BucketState(quota="connection_creation_rate", ip="10.0.0.1", limit=4.0, rate=-1.0)),
    )
    assert family is not None
    found = {tuple(sample.labels.values()): sample.value for sample in family.samples}
    assert found == {
        ("producer_byte_rate", "alice", "a,b", "", "", "", "1"): 0.5,
        ("producer.byte.rate", "", "", "", "t", "0", "2"): 2.0,
        ("connection_creation_rate", "", "", "10.0.0.1", "", "", ""): 0.0,
    }
    assert excluded == {}


def test_a_limit_of_zero_is_used_up() -> None:
    [family], _ = shown((1, BucketState(quota="producer_byte_rate", user="a", limit=0.0, rate=0.0)))
    assert family is not None
    assert [sample.value for sample in family.samples] == [1.0]


def test_the_buckets_with_the_highest_usage_are_shown() -> None:
    states = [
        (1, BucketState(quota="producer_byte_rate", user=str(number), limit=10_000.0, rate=float(number)))
        for number in range(MAX_SERIES + 3)
    ]
    steps, excluded = shown(*states)
    *pauses, family = steps
    assert family is not None
    assert {int(sample.labels["user"]) for sample in family.samples} == set(range(3, MAX_SERIES + 3))
    assert excluded == {FAMILY: 3}
    assert pauses == [None] * len(pauses)
    assert len(pauses) >= len(states) // AT_A_TIME
