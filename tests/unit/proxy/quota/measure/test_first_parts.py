"""The part with which a bucket begins."""

from proxy.quota.limits.enforcement import OBSERVE
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.measure.rate_rule import RateRule
from tests.support.sharing.members import a_quarter


def bucket(mode: str = "enforce") -> Bucket:
    return Bucket(quota="q", limit=100.0, rule=RateRule(burst_seconds=1.0, mode=mode), now=0.0)


def test_without_sharing_it_is_the_whole_limit() -> None:
    made = bucket()
    FirstParts().give(made, 0.0)
    assert (made.limit, made.record(100.0, 0.0)) == (100.0, 0.0)


def test_the_burst_is_a_part_too() -> None:
    made = bucket()
    a_quarter().give(made, 0.0)
    assert made.limit == 25.0
    assert made.record(25.0, 0.0) == 0.0
    assert made.record(1.0, 0.0) > 0.0


def test_an_observed_bucket_has_the_whole_limit() -> None:
    made = bucket(OBSERVE)
    a_quarter().give(made, 0.0)
    assert made.limit == 100.0
