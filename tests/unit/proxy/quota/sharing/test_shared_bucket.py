"""One limit among processes, by their reports."""

import pytest

from proxy.quota.sharing.in_force import InForce
from proxy.quota.sharing.members import Members
from proxy.quota.sharing.reports import SATURATED, BucketReport
from proxy.quota.sharing.shared_bucket import CREDIT_SECONDS, SETTLE_SECONDS, SharedBucket
from proxy.quota.sharing.waterfill import RESERVE


def entry(used: float, demand: float = SATURATED, waiting: int = 1, limit: float = 100.0) -> BucketReport:
    return BucketReport(key="k", limit=limit, used=used, demand=demand, waiting=waiting)


def members(*names: str) -> Members:
    live = Members()
    for name in names:
        live.see(name, 1, 0, 0.0)
    return live


def part(bucket: SharedBucket, offset: int) -> float:
    """The part when all have read the record at `offset`."""
    return bucket.in_force.least(offset + 1)


def test_saturated_processes_have_parts_by_their_waiting_connections() -> None:
    bucket = SharedBucket(100.0, InForce(), 0.0)
    bucket.see("a", entry(0.0, waiting=1), 0.0)
    bucket.see("b", entry(0.0, waiting=3), 0.0)
    bucket.divide(members("a", "b"), 5, "a", anew=False)
    assert part(bucket, 5) == pytest.approx(0.25)


def test_a_process_without_a_report_keeps_a_little() -> None:
    bucket = SharedBucket(100.0, InForce(), 0.0)
    bucket.see("a", entry(0.0), 0.0)
    bucket.divide(members("a", "b"), 5, "b", anew=False)
    assert part(bucket, 5) == pytest.approx(RESERVE / 2)


def test_what_was_not_used_is_divided_once_more() -> None:
    bucket = SharedBucket(100.0, InForce(), 0.0)
    bucket.see("a", entry(0.0), 0.0)
    bucket.see("a", entry(10.0), 0.2)
    bucket.divide(members("a"), 5, "a", anew=False)
    assert part(bucket, 5) == pytest.approx(1.0 + 0.1 / SETTLE_SECONDS)
    assert bucket.in_force.least_settled(6) == pytest.approx(1.0)


def test_credit_is_bounded_both_ways() -> None:
    for used, sign in ((0.0, 1.0), (10_000.0, -1.0)):
        bucket = SharedBucket(100.0, InForce(), 0.0)
        bucket.see("a", entry(0.0), 0.0)
        bucket.see("a", entry(used), 3.0)
        bucket.divide(members("a"), 5, "a", anew=False)
        assert part(bucket, 5) == pytest.approx(1.0 + sign * CREDIT_SECONDS / SETTLE_SECONDS)
        assert bucket.in_force.least_settled(6) == pytest.approx(1.0)


def test_the_first_report_of_a_process_shows_no_use() -> None:
    bucket = SharedBucket(100.0, InForce(), 0.0)
    bucket.see("a", entry(1_000_000.0), 0.0)
    bucket.divide(members("a"), 5, "a", anew=False)
    assert part(bucket, 5) == pytest.approx(1.0)


def test_small_changes_are_ignored() -> None:
    bucket = SharedBucket(100.0, InForce(), 0.0)
    live = members("a", "b")
    bucket.see("a", entry(0.0, waiting=100), 0.0)
    bucket.see("b", entry(0.0, waiting=100), 0.0)
    bucket.divide(live, 5, "a", anew=False)
    bucket.see("a", entry(0.0, waiting=104), 0.0)
    bucket.divide(live, 6, "a", anew=False)
    assert part(bucket, 6) == pytest.approx(0.5)
    bucket.see("a", entry(0.0, waiting=150), 0.0)
    bucket.divide(live, 7, "a", anew=False)
    assert part(bucket, 7) == pytest.approx(0.6)


def test_a_process_that_is_gone_leaves_its_share() -> None:
    bucket = SharedBucket(100.0, InForce(), 0.0)
    bucket.see("a", entry(0.0), 0.0)
    bucket.see("b", entry(0.0), 0.0)
    bucket.forget("b")
    bucket.divide(members("a"), 5, "a", anew=True)
    assert part(bucket, 5) == pytest.approx(1.0)


def both_use_half() -> SharedBucket:
    """Processes a and b use half each; a has reported 1.8 s later than b."""
    bucket = SharedBucket(100.0, InForce(), 0.0)
    for at, used in ((0.0, 0.0), (0.2, 10.0)):
        bucket.see("a", entry(used), at)
        bucket.see("b", entry(used), at)
    bucket.see("a", entry(100.0), 2.0)
    return bucket


def test_what_is_not_reported_yet_is_no_credit() -> None:
    bucket = both_use_half()
    bucket.divide(members("a", "b"), 5, "a", anew=False)
    assert part(bucket, 5) == pytest.approx(0.5)
    bucket.see("b", entry(10.0, demand=0.0), 2.0)
    bucket.divide(members("a", "b"), 6, "a", anew=False)
    assert part(bucket, 6) > 1.0, "b has used nothing since"


def test_what_a_process_that_is_gone_has_not_used_is_credit() -> None:
    bucket = both_use_half()
    bucket.forget("b")
    bucket.divide(members("a"), 5, "a", anew=True)
    assert part(bucket, 5) == pytest.approx(1.0 + CREDIT_SECONDS / SETTLE_SECONDS)


def test_a_process_that_is_not_live_has_nothing() -> None:
    bucket = SharedBucket(100.0, InForce(), 0.0)
    bucket.see("a", entry(0.0), 0.0)
    bucket.divide(members("b"), 5, "a", anew=True)
    assert part(bucket, 5) == 0.0


def test_it_is_known_whether_requests_wait_somewhere() -> None:
    bucket = SharedBucket(100.0, InForce(), 0.0)
    assert not bucket.short
    bucket.see("a", entry(0.0), 0.0)
    bucket.see("b", entry(0.0, demand=50.0), 0.0)
    bucket.divide(members("a", "b"), 5, "a", anew=False)
    assert bucket.short
    assert not bucket.see("b", entry(0.0, demand=10.0), 1.0)
    assert bucket.see("a", entry(0.0, demand=0.0), 1.0)
    assert not bucket.see("a", entry(0.0, demand=0.0), 2.0)
    bucket.divide(members("a", "b"), 6, "a", anew=False)
    assert not bucket.short


def test_the_burst_follows_the_limit_and_what_is_owed_beyond_it_does_not() -> None:
    bucket = SharedBucket(100.0, InForce(), 0.0)
    bucket.see("a", entry(0.0), 0.0)
    bucket.see("a", entry(350.0), 0.0)
    assert bucket.owed_seconds(1.0, 0.0) == pytest.approx(2.5)
    bucket.see("a", entry(350.0, limit=50.0), 0.0)
    assert bucket.owed_seconds(1.0, 0.0) == pytest.approx(5.0)
    assert bucket.owed_seconds(1.0, 2.0) == pytest.approx(3.0)
    bucket.see("a", entry(350.0, limit=100.0), 0.0)
    assert bucket.owed_seconds(1.0, 0.0) == pytest.approx(2.5)
