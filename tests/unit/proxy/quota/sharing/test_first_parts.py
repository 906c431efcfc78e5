"""The part with which a bucket begins while other processes share its limit."""

import pytest

from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.sharing.first_parts import SharedFirstParts
from proxy.quota.sharing.local_uses import bucket_key
from proxy.quota.sharing.reports import SATURATED, BucketReport, Report
from proxy.quota.sharing.sharing import Sharing
from proxy.quota.sharing.waterfill import RESERVE
from tests.support.sharing.members import a_quarter, one_of


def bucket(user: str = "u") -> Bucket:
    return Bucket(quota="q", limit=100.0, rule=RateRule(burst_seconds=1.0), now=0.0, user=user)


def used_by_another(node_id: int, key_of: Bucket) -> Sharing:
    """One of four processes, of which another one uses the whole limit of a bucket, as all have read."""
    sharing = one_of(4)
    key = bucket_key(node_id, key_of)
    for offset in range(8, 16):
        number = 3 + (offset - 8) // 4
        entry = BucketReport(key=key, limit=100.0, used=10.0 * number, demand=SATURATED, waiting=1)
        entries = [entry] if offset % 4 == 1 else []
        read_to = 8 if offset < 12 else 12
        report = Report(instance=f"p{offset % 4}", number=number, read_to=read_to, buckets=entries)
        sharing.see(report, offset, 1200)
    return sharing


def test_without_sharing_it_is_the_whole_limit() -> None:
    assert SharedFirstParts(1).of(bucket()) == 1.0


def test_a_limit_that_nobody_uses_has_equal_parts() -> None:
    assert a_quarter().of(bucket()) == 0.25


def test_a_limit_that_another_process_uses_leaves_the_reserve() -> None:
    parts = SharedFirstParts(1, used_by_another(1, bucket()))
    assert parts.of(bucket()) == pytest.approx(RESERVE / 4)
    assert parts.of(bucket("v")) == 0.25
    assert SharedFirstParts(2, parts.sharing).of(bucket()) == 0.25, "of another broker"
