"""Waits that do not become shorter when the part grows."""

import pytest

from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.measure.unreviewed_wait import unreviewed_wait


@pytest.mark.parametrize(("part", "wait"), [(1.0, 2.0), (0.1, 20.0), (0.01, 20.0), (0.0001, 20.0)])
def test_a_wait_is_at_most_as_long_as_with_a_tenth_of_the_limit(part: float, wait: float) -> None:
    bucket = Bucket(quota="q", limit=5.0, rule=RateRule(burst_seconds=1.0), now=0.0)
    bucket.share(part, 0.0)
    seconds = bucket.record(bucket.limit + 10.0, 0.0)
    assert unreviewed_wait(bucket, seconds) == pytest.approx(wait)


def test_a_limit_of_zero_never_admits() -> None:
    bucket = Bucket(quota="q", limit=0.0, rule=RateRule(burst_seconds=1.0), now=0.0)
    assert unreviewed_wait(bucket, bucket.record(1.0, 0.0)) == float("inf")
