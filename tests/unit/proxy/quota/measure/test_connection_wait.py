import pytest

from proxy.quota.limits.enforcement import ENFORCE, OBSERVE, UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.connection_wait import REVIEW_SECONDS, ConnectionWait
from proxy.quota.measure.rate_rule import RateRule

RULE = RateRule(burst_seconds=1.0, least_burst=1.0)
NOW = 10.0
SECONDS = 8.0


def waiting() -> tuple[Bucket, ConnectionWait]:
    """A connection that waits 8 seconds, under a rate of 2 per second."""
    bucket = Bucket(quota="connection_creation_rate", limit=2.0, rule=RULE, now=NOW)
    return bucket, ConnectionWait(NOW + SECONDS, NOW, bucket)


def test_a_wait_lasts_while_the_limit_does_not_change() -> None:
    _, wait = waiting()
    reviews = 0
    while not wait.review(wait.wake_at):
        assert wait.until == NOW + SECONDS
        reviews += 1
    assert reviews == SECONDS / REVIEW_SECONDS - 1


def test_a_timer_may_be_early() -> None:
    wait = ConnectionWait(NOW + 0.5, NOW, waiting()[0])
    assert wait.wake_at == NOW + 0.5
    assert wait.review(NOW + 0.4999)


def test_without_a_bucket_it_wakes_at_its_end_only() -> None:
    wait = ConnectionWait(NOW + SECONDS, NOW)
    assert wait.wake_at == NOW + SECONDS
    assert wait.review(NOW + SECONDS)


@pytest.mark.parametrize(("limit", "mode"), [(UNLIMITED, ENFORCE), (2.0, OBSERVE)])
def test_it_ends_when_the_limit_is_not_enforced_any_more(limit: float, mode: str) -> None:
    bucket, wait = waiting()
    bucket.configure(limit, RateRule(burst_seconds=1.0, least_burst=1.0, mode=mode), NOW)
    assert wait.review(NOW + 1.0)
    assert wait.until == NOW + 1.0


@pytest.mark.parametrize(
    ("limit", "until"), [(4.0, NOW + 1.0 + (SECONDS - 1.0) / 2), (1.0, NOW + SECONDS), (2.0, NOW + SECONDS)]
)
def test_another_limit_only_makes_it_shorter(limit: float, until: float) -> None:
    bucket, wait = waiting()
    bucket.configure(limit, RULE, NOW)
    assert not wait.review(NOW + 1.0)
    assert wait.until == pytest.approx(until)
    assert not wait.review(NOW + 2.0)
    assert wait.until == pytest.approx(until)


def test_a_limit_that_is_lowered_and_raised_again_does_not_make_it_shorter() -> None:
    bucket, wait = waiting()
    for seconds, limit in ((1.0, 0.5), (2.0, 2.0)):
        bucket.configure(limit, RULE, NOW)
        assert not wait.review(NOW + seconds)
    assert wait.until == pytest.approx(NOW + SECONDS)


def test_a_larger_part_of_the_limit_does_not_make_it_shorter() -> None:
    bucket, wait = waiting()
    bucket.share(0.01, NOW)
    assert not wait.review(NOW + 1.0)
    bucket.share(1.0, NOW)
    assert not wait.review(NOW + 2.0)
    assert wait.until == NOW + SECONDS
