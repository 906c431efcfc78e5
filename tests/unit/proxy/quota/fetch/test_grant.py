import pytest

from proxy.quota.fetch.grant import (
    BESIDE_BYTES,
    DEBT_SECONDS,
    LEAST_RETRY_SECONDS,
    LEAST_ROOM_BYTES,
    MOST_RETRY_SECONDS,
    FetchGrant,
)
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fetch_tokens import FIRST_FETCH_SECONDS, LEAST_FETCH_SECONDS, queue_of, tokens_left
from proxy.quota.measure.rate_rule import RateRule
from proxy.wire.fetch.request import NO_BOUND

LIMIT = 1000.0
PACED = RateRule(burst_seconds=1.0)


def bucket(rule: RateRule = PACED, limit: float = LIMIT) -> Bucket:
    return Bucket(quota="consumer_byte_rate", user="u", limit=limit, rule=rule, now=0.0)


def grant(*buckets: Bucket, last: FetchGrant | None = None, acquires: bool = False) -> FetchGrant:
    """The grant of a fetch: that of the last one, unless this is in flight."""
    made = FetchGrant() if last is None else FetchGrant(last.size) if last.granted else last
    made.begin(acquires)
    for one in buckets:
        made.places.add(one)
    made.places.complete()
    return made


def in_debt(size: float, rule: RateRule = PACED) -> Bucket:
    made = bucket(rule)
    made.record(size, 0.0)
    return made


def test_a_fetch_within_the_limit_is_granted_what_is_left() -> None:
    one = bucket()
    made = grant(one)
    assert made.ask(0.0) == 0.0
    assert (made.granted, made.max_bytes) == (True, 1000)
    assert queue_of(one).reserved(0.0) == LIMIT * FIRST_FETCH_SECONDS


def test_a_fetch_waits_for_the_debt() -> None:
    one = in_debt(1500)
    made = grant(one)
    assert made.ask(0.0) == pytest.approx(0.5)
    assert not made.granted
    assert made.longest is one
    assert made.retry_seconds(0.0) == pytest.approx(0.5)
    assert made.ask(0.5) == 0.0
    assert made.max_bytes == LIMIT * LEAST_FETCH_SECONDS


def test_the_quotas_are_asked_again_within_bounds() -> None:
    assert grant(in_debt(90_000)).ask(0.0) == MOST_RETRY_SECONDS
    assert grant(in_debt(1001)).ask(0.0) == LEAST_RETRY_SECONDS


def test_the_bucket_with_the_longest_wait_counts() -> None:
    short, long = in_debt(1100), in_debt(1400)
    made = grant(short, long, bucket())
    assert made.ask(0.0) == pytest.approx(0.4)
    assert made.longest is long
    assert made.retry_seconds(0.0) == pytest.approx(0.4)


def test_what_is_granted_is_not_granted_twice() -> None:
    one = bucket()
    last = grant(one)
    last.settle(900, 900, 0.0, 0.0)
    first = grant(one, last=last)
    assert first.ask(0.0) == 0.0
    one.record(400, 0.0)
    second = grant(one)
    assert second.ask(0.0) == pytest.approx(0.3)
    first.settle(100, 100, 0.0, 0.0)
    assert second.ask(0.0) == 0.0


def test_a_connection_keeps_its_place_from_fetch_to_fetch() -> None:
    one = in_debt(2000)
    first, second = grant(one), grant(one)
    first.ask(0.0)
    second.ask(0.0)
    first.keep_places(1.0)
    again = grant(one, last=first)
    assert again.ask(1.0) == 0.0
    assert second.ask(1.0) > 0.0


def test_who_has_got_much_lets_others_go_first() -> None:
    one = bucket()
    large, small = grant(one), grant(one)
    assert large.ask(0.0) == small.ask(0.0) == 0.0
    one.record(1500, 0.0)
    large.settle(1500, 1500, 0.5, 0.0)
    small.settle(10, 10, 0.5, 0.0)
    large, small = grant(one, last=large), grant(one, last=small)
    assert large.ask(0.5) > 0.0, "small is muted until then as well"
    assert small.ask(0.5) == 0.0


def test_fetches_that_wait_share_what_one_may_bring() -> None:
    one = in_debt(2000)
    waiting = [grant(one) for _ in range(4)]
    for made in waiting:
        made.ask(0.0)
    assert waiting[0].ask(1.0) == 0.0
    assert waiting[0].max_bytes == int(LIMIT * LEAST_FETCH_SECONDS / 4)


def test_a_fetch_that_was_granted_and_got_no_response_keeps_its_reservation() -> None:
    one, other = bucket(), bucket()
    last = grant(one, other)
    assert last.ask(0.0) == 0.0
    made = grant(one, other, last=last)
    assert made.ask(0.0) == 0.0
    assert queue_of(one).reserved(0.0) == 2 * LIMIT * FIRST_FETCH_SECONDS
    made.settle(10, 10, 0.0, 0.0)
    last.end()
    assert tokens_left(one, 0.0) == LIMIT - LIMIT * FIRST_FETCH_SECONDS


def test_a_fetch_that_is_not_forwarded_after_all_returns_what_it_has_reserved() -> None:
    one = bucket()
    made = grant(one)
    made.ask(0.0)
    made.cancel()
    assert (made.granted, queue_of(one).reserved(0.0), queue_of(one).first_bytes) == (False, 0.0, -1.0)
    made.end()
    assert tokens_left(one, 0.0) == LIMIT


def ample() -> tuple[Bucket, FetchGrant]:
    """A bucket with tokens for two fetches of 1 MiB, and a grant of a connection that knows its responses."""
    one = bucket(limit=2.5 * LEAST_ROOM_BYTES)
    last = grant(one)
    last.settle(300, 300, 0.0, 0.0)
    return one, grant(one, last=last)


def test_a_fetch_beside_another_reserves_bytes_of_its_own() -> None:
    one, first = ample()
    assert first.ask(0.0) == 0.0
    second = grant(one, last=first)
    assert second.ask_beside(1, 100, 0.0)
    assert queue_of(one).reserved(0.0) == 600.0
    assert second.max_bytes == first.max_bytes == 2.5 * LEAST_ROOM_BYTES * LEAST_FETCH_SECONDS
    first.settle(300, 300, 0.0, 0.0)
    assert queue_of(one).reserved(0.0) == 300.0
    third = grant(one, last=first)
    assert third.ask_beside(1, 100, 0.0)
    second.end()
    third.end()
    assert tokens_left(one, 0.0) == 2.5 * LEAST_ROOM_BYTES - 600.0


@pytest.mark.parametrize(
    ("others", "max_bytes"), [(2, 100), (1, LEAST_ROOM_BYTES * 2), (1, NO_BOUND)], ids=str
)
def test_a_fetch_beside_others_needs_tokens_for_what_all_may_bring(others: int, max_bytes: int) -> None:
    one, first = ample()
    first.ask(0.0)
    second = grant(one, last=first)
    assert not second.ask_beside(others, max_bytes, 0.0)
    assert (second.granted, queue_of(one).reserved(0.0)) == (False, 300.0)


@pytest.mark.parametrize(("size", "beside"), [(BESIDE_BYTES, True), (BESIDE_BYTES + 1, False)], ids=str)
def test_no_fetch_goes_beside_others_if_its_response_is_expected_to_be_large(size: int, beside: bool) -> None:
    one = bucket(limit=100 * LEAST_ROOM_BYTES)
    last = grant(one)
    last.settle(size, size, 0.0, 0.0)
    first = grant(one, last=last)
    assert first.ask(0.0) == 0.0
    assert grant(one, last=first).ask_beside(1, 100, 0.0) == beside


def test_a_fetch_beside_others_does_not_pass_one_that_waits() -> None:
    one, first = ample()
    first.ask(0.0)
    one.record(3.0 * LEAST_ROOM_BYTES, 0.0)
    assert grant(one).ask(0.0) > 0.0
    one.give_back(3.0 * LEAST_ROOM_BYTES, 0.0)
    assert not grant(one, last=first).ask_beside(1, 100, 0.0)


def test_fetches_for_which_nobody_waits_are_granted_what_others_are() -> None:
    """A line makes no difference to the bytes, but by the number of connections that share them."""
    for used in (0.0, 700.0, 1000.0):
        one, other = in_debt(used), in_debt(used)
        alone, beside = grant(one), grant(other)
        gone = queue_of(other).newcomer()
        queue_of(other).wait(gone, 9.0)
        assert alone.ask(0.0) == beside.ask(0.0) == 0.0
        assert beside.max_bytes == alone.max_bytes // 2


def test_a_response_is_withheld_when_the_debt_is_large() -> None:
    one = bucket()
    made = grant(one)
    made.ask(0.0)
    one.record(LIMIT * (1 + DEBT_SECONDS), 0.0)
    assert not made.withholds(9, 0.0)
    one.record(1, 0.0)
    assert made.withholds(9, 0.0)
    assert made.longest is one


WINDOWED = RateRule(repays=True)


@pytest.mark.parametrize(("rule", "seconds"), [(PACED, 1.0 + 9.0), (WINDOWED, 10.0)])
def test_records_that_are_acquired_are_delivered_as_far_as_kafkas_window_allows(
    rule: RateRule, seconds: float
) -> None:
    one = bucket(rule)
    made = grant(one, acquires=True)
    made.ask(0.0)
    one.record(seconds * LIMIT, 0.0)
    assert not made.withholds(int(LIMIT), 0.0)
    one.record(1, 0.0)
    assert made.withholds(int(LIMIT), 0.0)


def test_before_the_size_of_a_batch_is_known_one_fetch_acquires_records_at_a_time() -> None:
    one = bucket()
    first, second = grant(one, acquires=True), grant(one, acquires=True)
    assert first.ask(0.0) == 0.0
    assert second.ask(0.0) > 0.0
    first.settle(300, 300, 0.0, 0.0)
    assert second.ask(0.0) == 0.0
    assert queue_of(one).reserved(0.0) == 300.0


@pytest.mark.parametrize(("size", "wait"), [(400, 0.9), (90_000, 1.5)])
def test_a_fetch_that_acquires_records_waits_for_their_size_or_the_burst(size: int, wait: float) -> None:
    one = in_debt(1500)
    last = grant(one, acquires=True)
    last.settle(size, 0, 0.0, 0.0)
    made = grant(one, last=last, acquires=True)
    assert made.ask(0.0) == pytest.approx(min(wait, MOST_RETRY_SECONDS))
    assert made.ask(wait - 0.01) > 0.0
    assert made.ask(wait) == 0.0


def test_who_hangs_up_has_spent_what_was_reserved() -> None:
    one = bucket()
    last = grant(one)
    last.settle(300, 300, 0.0, 0.0)
    made = grant(one, last=last)
    made.ask(0.0)
    made.end()
    assert tokens_left(one, 0.0) == 700.0
    made.end()
    assert tokens_left(one, 0.0) == 700.0, "once"


@pytest.mark.parametrize(
    "free_one", [bucket(RateRule(burst_seconds=1.0, mode=OBSERVE)), bucket(limit=UNLIMITED)]
)
def test_observed_and_unlimited_buckets_do_not_limit(free_one: Bucket) -> None:
    free_one.record(90_000, 0.0)
    made = grant(free_one)
    assert not made.any
    assert made.ask(0.0) == 0.0
    assert made.max_bytes == NO_BOUND


def test_a_limit_that_is_raised_or_removed_frees_who_waits() -> None:
    one = in_debt(5000)
    made = grant(one)
    assert made.ask(0.0) == MOST_RETRY_SECONDS
    one.configure(LIMIT * 100, PACED, 0.0)
    assert made.ask(0.0) == pytest.approx(0.04)
    one.configure(UNLIMITED, PACED, 0.0)
    assert made.ask(0.0) == 0.0
    assert made.max_bytes == NO_BOUND
    made.settle(10, 10, 0.0, 0.0)
