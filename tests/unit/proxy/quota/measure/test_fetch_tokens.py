import pytest

from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fetch_tokens import (
    FIRST_FETCH_SECONDS,
    GROWTH,
    LEAST_FETCH_SECONDS,
    enforced,
    first_fetch_bytes,
    free,
    most_bytes,
    queue_of,
    tokens_left,
)
from proxy.quota.measure.rate_rule import RateRule

LIMIT = 1000.0
PACED = RateRule(burst_seconds=1.0)


def bucket(rule: RateRule = PACED, limit: float = LIMIT) -> Bucket:
    return Bucket(quota="consumer_byte_rate", user="u", limit=limit, rule=rule, now=0.0)


def test_by_windows_the_rest_of_the_window_is_left() -> None:
    by_window = bucket(RateRule())
    assert tokens_left(by_window, 0.0) == 10_000.0
    by_window.record(4000, 0.0)
    assert tokens_left(by_window, 0.0) == pytest.approx(6000.0)
    by_window.record(8000, 0.0)
    assert tokens_left(by_window, 0.0) == pytest.approx(-2000.0)


def test_a_bucket_is_free_if_nobody_has_reserved_or_waits() -> None:
    one = bucket()
    assert free(one, 0.0)
    one.record(980, 0.0)
    assert free(one, 0.0)
    ticket = queue_of(one).newcomer()
    ticket.size = 21.0
    queue_of(one).wait(ticket, 9.0)
    assert not free(one, 0.0)
    queue_of(one).grant(ticket, 0.0)
    assert not free(one, 0.0)
    queue_of(one).end(ticket)
    assert free(one, 0.0)


def test_a_bucket_has_one_queue() -> None:
    one = bucket()
    assert queue_of(one) is queue_of(one) is one.fetch_queue


def test_observed_and_unlimited_buckets_are_not_enforced() -> None:
    assert enforced(bucket())
    assert not enforced(bucket(limit=UNLIMITED))
    assert not enforced(bucket(RateRule(burst_seconds=1.0, mode=OBSERVE)))


def test_a_first_fetch_is_expected_to_bring_what_others_brought() -> None:
    one = bucket()
    queue = queue_of(one)
    assert first_fetch_bytes(one, queue) == LIMIT * FIRST_FETCH_SECONDS
    queue.first_response(700.0, 700.0)
    assert first_fetch_bytes(one, queue) == 700.0


# tokens that are left, expected bytes, bytes that the fetch may bring
BROUGHT = [
    (-5.0, 100.0, LIMIT * LEAST_FETCH_SECONDS),
    (900.0, 100.0, 900.0),
    (9e9, 100.0, 100.0 * GROWTH),
    (9e9, 1.0, LIMIT * LEAST_FETCH_SECONDS),
]


@pytest.mark.parametrize(("left", "expected", "most"), BROUGHT)
def test_a_fetch_may_bring_the_tokens_but_no_more_than_its_share(
    left: float, expected: float, most: float
) -> None:
    assert most_bytes(left, expected, LIMIT) == most
