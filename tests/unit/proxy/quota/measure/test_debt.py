import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.debt import Debt
from proxy.quota.measure.rate_rule import RateRule

PACE = RateRule(burst_seconds=1.0)
WINDOW = RateRule()
WHO = Identity("u", "c", "127.0.0.1")


def owing(rule: RateRule) -> tuple[Bucket, Debt]:
    """A connection owes a bucket of 1000 B/s 20 seconds, from 10.0 on."""
    bucket = Bucket(quota="producer_byte_rate", limit=1000.0, rule=rule, now=10.0)
    seconds = bucket.record(21_000 if rule is PACE else 30_000, 10.0, WHO)
    assert seconds == pytest.approx(20.0)
    return bucket, Debt(bucket, WHO, 10.0 + seconds)


both = pytest.mark.parametrize("rule", [PACE, WINDOW])


@both
def test_a_debt_stands_until_it_is_paid(rule: RateRule) -> None:
    _, debt = owing(rule)
    for now in (10.0, 15.0, 25.0, 29.9):
        assert debt.review(now) == pytest.approx(30.0)
    assert debt.review(30.0) <= 30.0


@both
@pytest.mark.parametrize(("limit", "until"), [(2000.0, 20.0), (500.0, 50.0), (1e9, 10.0)])
def test_another_limit_changes_the_rest(rule: RateRule, limit: float, until: float) -> None:
    bucket, debt = owing(rule)
    bucket.configure(limit, rule, 10.0)
    assert debt.review(10.0) == pytest.approx(until, abs=0.001)
    assert debt.review(10.0) == pytest.approx(until, abs=0.001)


@both
def test_without_a_limit_nothing_is_owed(rule: RateRule) -> None:
    bucket, debt = owing(rule)
    bucket.configure(UNLIMITED, rule, 12.0)
    assert debt.review(12.0) == 12.0


@both
def test_an_observed_bucket_is_owed_nothing(rule: RateRule) -> None:
    bucket, debt = owing(rule)
    bucket.configure(1000.0, RateRule(burst_seconds=rule.burst_seconds, mode=OBSERVE), 12.0)
    assert debt.review(12.0) == 12.0


def test_nobody_owes_more_than_the_bucket_does() -> None:
    bucket, debt = owing(PACE)
    bucket.record(-15_000, 10.0)
    assert debt.review(10.0) == pytest.approx(15.0)


def test_a_bounded_wait_does_not_follow_the_part_of_the_limit() -> None:
    """The next one is as long as before, whatever the limit is: a part that shrinks makes no wait longer."""
    rule = RateRule(burst_seconds=1.0, max_throttle_seconds=1.0)
    bucket = Bucket(quota="request_percentage", limit=1000.0, rule=rule, now=10.0)
    assert bucket.record(21_000, 10.0) == 1.0
    debt = Debt(bucket, WHO, 11.0)
    for part in (0.1, 1.0):
        bucket.share(part, 10.2)
        assert debt.review(10.2) == 11.0
    bucket.configure(1e9, rule, 10.3)
    assert debt.review(10.3) == pytest.approx(10.3, abs=0.001)
