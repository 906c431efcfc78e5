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


def windowed() -> Bucket:
    return Bucket(quota="q", limit=100.0, rule=RateRule(), now=0.0, user="u")


def after_a_window(sharing: Sharing) -> Sharing:
    """Nobody has reported anything for longer than Kafka's window."""
    for number in range(3, 16):
        for index in range(4):
            offset = 4 * (number - 1) + index
            at = 1000 * (number - 1)
            report = Report(instance=f"p{index}", number=number, read_to=offset - 4, buckets=[])
            sharing.see(report, offset, at)
    return sharing


def test_what_kafkas_window_would_allow_at_once_is_a_part_too() -> None:
    parts = SharedFirstParts(1, after_a_window(one_of(4)))
    bucket = windowed()
    parts.give(bucket, 0.0)
    assert (bucket.limit, bucket.mean_limit(0.0)) == (25.0, 25.0)
    assert bucket.record(250.0, 0.0) == 0.0
    assert bucket.record(10.0, 0.0) > 0.0


@pytest.mark.parametrize("used", [False, True], ids=["joined lately", "used by another"])
def test_with_kafkas_window_there_is_no_burst_if_others_may_have_had_it(used: bool) -> None:
    """The bucket has its part from now on, and the reserve for the time before."""
    bucket = windowed()
    parts = SharedFirstParts(1, used_by_another(1, bucket) if used else one_of(4))
    parts.give(bucket, 0.0)
    assert bucket.mean_limit(0.0) == pytest.approx(100.0 * RESERVE / 4)
    if not used:
        assert bucket.limit == 25.0
        assert bucket.mean_limit(10.0) == pytest.approx(25.0)
    assert bucket.record(20.0, 0.0) > 0.0
