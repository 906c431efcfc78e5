from random import Random

import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import ENFORCE, OBSERVE, UNLIMITED, RateWindow
from proxy.quota.measure.bucket import IDLE_SECONDS, Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.measure.rates import SampledRate

PACE = RateRule(burst_seconds=1.0)
WINDOW = RateRule()
OBSERVED = RateRule(burst_seconds=1.0, mode=OBSERVE)
OBSERVED_WINDOW = RateRule(mode=OBSERVE)
SHORT = RateRule(burst_seconds=1.0, max_throttle_seconds=2.0)
SHORT_WINDOW = RateRule(max_throttle_seconds=2.0)


def bucket(rule: RateRule = PACE, limit: float = 1000.0) -> Bucket:
    return Bucket(quota="producer_byte_rate", user="u", limit=limit, rule=rule, now=10.0)


# rule, size of one use at 10.0, seconds to wait
WAITS = [
    (PACE, 1000, 0.0),
    (PACE, 1500, 0.5),
    (RateRule(burst_seconds=2.0), 2000, 0.0),
    (RateRule(burst_seconds=2.0), 2500, 0.5),
    (RateRule(burst_seconds=0.25), 500, 0.25),
    (WINDOW, 10_000, 0.0),
    (WINDOW, 15_000, 5.0),
    (RateRule(window=RateWindow(3, 2.0)), 6000, 2.0),
    (RateRule(burst_seconds=0.25, least_burst=400.0), 500, 0.1),
    (RateRule(least_burst=400.0), 500, 0.1),
    (SHORT, 3000, 2.0),
    (SHORT, 9000, 2.0),
    (SHORT_WINDOW, 12_000, 2.0),
    (SHORT_WINDOW, 90_000, 2.0),
    (OBSERVED, 1500, 0.5),
    (OBSERVED_WINDOW, 15_000, 5.0),
]


@pytest.mark.parametrize(("rule", "size", "wait"), WAITS)
def test_the_rule_decides_the_wait(rule: RateRule, size: int, wait: float) -> None:
    assert bucket(rule).record(size, 10.0) == pytest.approx(wait)


@pytest.mark.parametrize("rule", [PACE, WINDOW])
def test_the_shown_rate_is_kafkas_whatever_limits(rule: RateRule) -> None:
    used = bucket(rule)
    used.record(500, 10.0)
    assert used.state(10.0).rate == pytest.approx(50.0)


def test_state_has_every_value() -> None:
    used = bucket()
    used.count_throttle(2.0, 1, 22.0)
    used.count_throttle(0.5, 1, 21.5)
    used.count_throttle(0.25, 0, 21.25)
    state = used.state(22.0)
    assert (state.quota, state.user, state.client_id, state.limit) == ("producer_byte_rate", "u", "", 1000.0)
    assert (state.throttled_until, state.throttled_requests, state.throttle_seconds) == (22.0, 2, 2.75)
    assert (state.mode, state.ip) == (ENFORCE, "")
    assert bucket(OBSERVED).state(22.0).mode == OBSERVE
    assert Bucket(quota="q", limit=1.0, rule=PACE, now=0.0, ip="10.0.0.1").state(0.0).ip == "10.0.0.1"


@pytest.mark.parametrize("rule", [PACE, WINDOW])
def test_a_lower_limit_throttles_at_once_for_what_was_used_before(rule: RateRule) -> None:
    used = bucket(rule)
    used.record(1000, 10.0)
    used.configure(10.0, rule, 10.0)
    assert used.limit == 10.0
    assert used.record(0, 10.0) == pytest.approx(0.0 if rule is PACE else 90.0)
    used.record(1000, 10.0)
    assert used.record(0, 10.0) > 90.0


def test_a_debt_stays_and_is_paid_at_the_new_limit() -> None:
    used = bucket()
    used.record(2000, 10.0)
    used.configure(500.0, PACE, 10.0)
    assert used.record(0, 10.0) == pytest.approx(2.0)


@pytest.mark.parametrize("rule", [PACE, WINDOW])
def test_a_limit_that_goes_and_comes_back_finds_the_history(rule: RateRule) -> None:
    used = bucket(rule)
    before = used.record(20_000, 10.0)
    assert before > 0
    used.configure(UNLIMITED, rule, 10.0)
    used.configure(1000.0, rule, 11.0)
    assert used.record(0, 11.0) == pytest.approx(before - 1.0, abs=1.0)
    assert used.record(0, 11.0) > 0


def test_from_pace_to_window_the_rate_carries_over() -> None:
    used = bucket()
    used.record(20_000, 10.0)
    used.configure(1000.0, WINDOW, 10.0)
    assert used.record(0, 10.0) == pytest.approx(10.0)


def test_from_window_to_pace_starts_without_debt() -> None:
    used = bucket(WINDOW)
    used.record(20_000, 10.0)
    used.configure(1000.0, PACE, 10.0)
    assert used.record(1000, 10.0) == 0.0
    assert used.record(1000, 10.0) == pytest.approx(1.0)


def test_another_window_starts_the_rate_anew() -> None:
    used = bucket(WINDOW)
    used.record(20_000, 10.0)
    used.configure(1000.0, RateRule(window=RateWindow(3, 1.0)), 10.0)
    assert used.state(10.0).rate == 0.0
    assert used.record(3000, 10.0) == pytest.approx(1.0)


def test_idle_after_an_hour_without_a_record() -> None:
    used = bucket()
    assert not used.idle(10.0 + IDLE_SECONDS - 0.001)
    assert used.idle(10.0 + IDLE_SECONDS)
    used.record(1, 100.0)
    used.state(3000.0)
    assert not used.idle(100.0 + IDLE_SECONDS - 0.001)
    assert used.idle(100.0 + IDLE_SECONDS)


# rule, what is used at 10.0 to owe 20 s
CUT_SHORT = [(SHORT, 21_000), (SHORT_WINDOW, 30_000)]


@pytest.mark.parametrize(("rule", "size"), CUT_SHORT)
def test_the_part_beyond_the_longest_wait_stays_as_debt(rule: RateRule, size: int) -> None:
    used = bucket(rule)
    waited = 10.0
    for _ in range(10):
        assert used.record(size if waited == 10.0 else 0, waited) == pytest.approx(2.0)
        waited += 2.0
    assert used.record(0, waited) == pytest.approx(0.0)


@pytest.mark.parametrize(("rule", "size"), CUT_SHORT)
def test_a_debt_is_paid_at_the_new_limit(rule: RateRule, size: int) -> None:
    used = bucket(rule)
    used.record(size, 10.0)
    used.configure(10_000.0, rule, 12.0)
    assert used.record(0, 12.0) == pytest.approx(1.8)


@pytest.mark.parametrize(("rule", "size"), CUT_SHORT)
def test_a_debt_grows_by_what_is_used_in_it(rule: RateRule, size: int) -> None:
    used = bucket(rule)
    used.record(size, 10.0)
    used.record(3000, 12.0)
    assert used.record(0, 31.0) == pytest.approx(2.0)
    assert used.record(0, 32.5) == pytest.approx(0.5)


def test_a_wait_that_is_not_cut_short_leaves_the_window_its_own_memory() -> None:
    used = bucket(SHORT_WINDOW)
    assert used.record(11_500, 10.0) == pytest.approx(1.5)
    assert used.record(0, 10.5) == pytest.approx(1.0)
    assert used.record(0, 22.0) == 0.0


def test_no_more_debt_is_remembered_than_the_rule_says() -> None:
    used = bucket(RateRule(burst_seconds=1.0, max_throttle_seconds=2.0, max_debt_seconds=5.0))
    for _ in range(100):
        assert used.record(50_000, 10.0) == 2.0
    assert used.record(0, 13.5) == pytest.approx(1.5)
    assert used.record(0, 15.0) == pytest.approx(0.0)


def test_an_observed_debt_is_paid_at_once() -> None:
    used = bucket(OBSERVED)
    used.record(1000, 10.0)
    for _ in range(100):
        assert used.record(500, 10.0) == pytest.approx(0.5)
    used.configure(1000.0, PACE, 10.0)
    assert used.record(500, 10.5) == pytest.approx(0.0)


def test_observing_forgives_what_was_owed() -> None:
    used = bucket(SHORT_WINDOW)
    used.record(90_000, 10.0)
    used.configure(1000.0, OBSERVED_WINDOW, 10.0)
    assert used.record(0, 22.0) == 0.0


@pytest.mark.parametrize("rule", [OBSERVED, OBSERVED_WINDOW])
def test_observed_waits_count_as_if_one_client_had_waited(rule: RateRule) -> None:
    """At ten times the quota a client would be waiting nine tenths of the time, or nearly always."""
    used = bucket(rule)
    longest = 0.0
    for step in range(2000):
        now = 10.0 + step * 0.01
        seconds = used.record(100, now)
        longest = max(longest, seconds)
        if seconds > 0.0:
            used.count_observed(seconds, now)
    assert 1000 < used.throttled_requests < 2000
    assert 15.0 < used.throttle_seconds < 20.0 + longest


def test_an_observed_wait_counts_as_far_as_it_goes_beyond_the_one_before() -> None:
    used = bucket(OBSERVED)
    for seconds, now in [(2.0, 10.0), (2.0, 11.0), (0.5, 11.0), (1.0, 20.0)]:
        used.count_observed(seconds, now)
    state = used.state(20.0)
    assert (state.throttled_requests, state.throttle_seconds, state.throttled_until) == (4, 4.0, 21.0)


def connections(count: int) -> list[Identity]:
    return [Identity("u", "c", "127.0.0.1") for _ in range(count)]


def test_each_connection_waits_for_its_own_part_of_a_debt() -> None:
    large, small = connections(2)
    used = bucket()
    assert used.record(11_000, 10.0, large) == pytest.approx(10.0)
    assert used.record(100, 10.0, small) == pytest.approx(10.1)
    assert used.record(100, 11.0, small) == pytest.approx(0.2)
    assert used.record(0, 11.0) == pytest.approx(9.2)


def test_use_within_the_tokens_is_no_debt() -> None:
    one, other = connections(2)
    used = bucket()
    assert used.record(1500, 10.0, one) == pytest.approx(0.5)
    assert used.record(500, 10.0, other) == pytest.approx(1.0)
    assert used.record(1000, 12.0, one) == pytest.approx(0.0)
    assert used.record(500, 12.0, other) == pytest.approx(0.5)


def test_without_a_debt_no_share_is_left() -> None:
    """What a connection owed is forgotten with the debt, whatever rounding left of it."""
    one, other = connections(2)
    used = bucket()
    used.record(3000, 10.0, one)
    used.record(0, 12.0, other)
    assert used.record(1000, 13.5, other) == pytest.approx(0.0)
    assert used.record(500, 13.5, other) == pytest.approx(0.5)
    assert used.record(500, 13.5, one) == pytest.approx(1.0)


def test_debts_of_connections_are_paid_at_the_new_limit() -> None:
    large, small = connections(2)
    used = bucket()
    used.record(11_000, 10.0, large)
    used.record(1000, 10.0, small)
    used.configure(500.0, PACE, 11.0)
    assert used.record(0, 11.0, small) == pytest.approx(2.0)
    assert used.record(0, 11.0, large) == pytest.approx(20.0)


@pytest.mark.parametrize("rule", [OBSERVED, WINDOW])
def test_another_rule_forgets_whose_debt_it_was(rule: RateRule) -> None:
    (one,) = connections(1)
    used = bucket()
    used.record(3000, 10.0, one)
    used.configure(1000.0, rule, 10.0)
    used.record(0, 10.0, one)
    used.configure(1000.0, PACE, 10.0)
    assert used.record(1500, 11.0, one) == pytest.approx(0.5)


def test_a_share_is_a_part_of_the_limit_until_it_changes() -> None:
    bucket = Bucket(quota="q", limit=100.0, rule=RateRule(burst_seconds=1.0), now=0.0)
    bucket.share(0.25, 0.0)
    assert (bucket.limit, bucket.whole_limit) == (25.0, 100.0)
    assert bucket.record(50.0, 0.0) == pytest.approx(1.0), "25 were there, and 25 come in a second"
    bucket.share(0.5, 0.0)
    assert bucket.wait(0.0) == pytest.approx(0.5)
    bucket.configure(200.0, RateRule(burst_seconds=1.0), 0.0)
    assert (bucket.limit, bucket.whole_limit) == (100.0, 200.0)
    assert (bucket.state(0.0).limit, bucket.state(0.0).share) == (200.0, 100.0)


def test_kafkas_rate_is_compared_with_the_mean_part_and_the_excess_is_paid_at_the_present_one() -> None:
    bucket = Bucket(quota="q", limit=100.0, rule=RateRule(), now=0.0)
    bucket.share(0.2, 0.0)
    assert bucket.mean_limit(0.0) == 20.0
    bucket.share(0.6, 0.0)
    assert bucket.mean_limit(0.0) == 20.0
    assert bucket.record(320.0, 0.0) == pytest.approx(2.0), "200 of them are free, 60 are paid per second"
    assert bucket.mean_limit(5.0) == pytest.approx(40.0)
    assert bucket.wait(5.0) == 0.0


def test_a_bucket_without_a_limit_has_no_share() -> None:
    bucket = Bucket(quota="q", limit=100.0, rule=RateRule(), now=0.0)
    bucket.configure(UNLIMITED, RateRule(), 0.0)
    bucket.share(0.5, 0.0)
    assert bucket.limit == UNLIMITED


def test_used_counts_what_was_not_given_back() -> None:
    bucket = Bucket(quota="q", limit=100.0, rule=RateRule(burst_seconds=1.0), now=0.0)
    bucket.record(150.0, 0.0)
    bucket.give_back(20.0, 0.0)
    assert bucket.used == 130.0
    assert bucket.debt(0.0) == pytest.approx(30.0)


REPAYS = RateRule(repays=True)


@pytest.mark.parametrize("size", [8_000, 11_000, 16_000, 22_000, 40_000])
def test_a_rule_that_repays_gives_no_more_than_the_limit(size: int) -> None:
    """Kafka's rate forgets a use after 11 s: of 22,000 bytes at 1,000 per second it demands 12 s."""
    used, now, got = bucket(REPAYS), 10.0, 0
    while now < 1010.0:
        if used.wait(now) <= 0.0:
            used.record(size, now)
            got += size
        now += 0.5
    assert got <= 1000.0 * (1000.0 + 10.0) + size


def test_a_rule_that_repays_waits_as_kafka_at_first() -> None:
    used = bucket(REPAYS)
    assert used.record(15_000, 10.0) == pytest.approx(5.0)
    assert used.record(1_000, 15.0) == pytest.approx(6.0)


def test_what_is_given_back_need_not_be_repaid() -> None:
    used = bucket(REPAYS)
    used.record(15_000, 10.0)
    used.give_back(15_000, 10.0)
    assert used.wait(10.0) == 0.0
    assert used.record(10_000, 10.0) == 0.0


def test_what_must_be_repaid_follows_the_limit() -> None:
    used = bucket(REPAYS)
    used.record(40_000, 10.0)
    used.configure(2000.0, REPAYS, 10.0)
    assert used.wait(10.0) == pytest.approx(15.0)
    used.configure(2000.0, WINDOW, 10.0)
    assert used.allowance is None


def test_a_bucket_is_as_new_when_everything_is_repaid() -> None:
    used = bucket(REPAYS)
    used.record(15_000, 10.0)
    assert [used.as_new(now) for now in (22.0, 24.0, 26.0)] == [False, False, True]


def test_an_observed_bucket_need_not_repay() -> None:
    used = bucket(RateRule(repays=True, mode=OBSERVE))
    used.record(40_000, 10.0)
    assert used.allowance is None
    assert used.wait(30.0) == 0.0


def test_the_shown_rate_of_a_paced_bucket_is_that_of_its_single_uses() -> None:
    """Although uses of the same sample are added to it as one."""
    random = Random(4)
    now = 10.0
    used = bucket()
    single = SampledRate(PACE.window.samples, PACE.window.seconds)
    for _ in range(3000):
        now += random.choice([0.0, 0.0004, 0.01, 0.3, 0.9985, 1.0, 1.0015, 12.0, -0.002])
        value = float(random.randrange(1000))
        if random.random() < 0.2:
            used.give_back(value, now)
            value = -value
        else:
            used.record(value, now)
        single.record(value, now)
        if random.random() < 0.3:
            asked = now + random.choice([0.0, 0.5, 3.0])
            assert used.measure(asked) == single.measure(asked)


AVERAGES = RateRule(averages=True)


def test_an_average_makes_no_client_wait() -> None:
    used = bucket(AVERAGES)
    assert used.averaged
    assert used.record(50_000, 10.0, Identity("u", "c", "127.0.0.1")) == 0.0
    used.record(-10_000, 10.0)
    assert used.used == 40_000
    assert not used.over(14.9), "it changes every five seconds"
    assert (used.measure(15.0), used.over(15.0)) == (8000.0, True)
    assert used.wait(15.0) > 0.0
    assert not used.as_new(15.0)
    assert (used.tokens, used.allowance, used.debt(15.0)) == (None, None, 0.0)


@pytest.mark.parametrize("rule", [PACE, WINDOW, REPAYS])
def test_each_rule_has_one_limiter(rule: RateRule) -> None:
    used = bucket(AVERAGES)
    used.configure(1000.0, rule, 10.0)
    assert (used.averaged, used.tokens is not None) == (False, rule.paced)
    assert (used.allowance is not None) == rule.repays
    assert used.record(15_000, 10.0) > 0.0
    used.configure(1000.0, AVERAGES, 10.0)
    assert used.averaged
    assert used.record(15_000, 10.0) == 0.0


def test_forgotten_tokens_are_all_there_again() -> None:
    used = bucket()
    used.record(5000, 10.0)
    used.forget_tokens()
    used.configure(2000.0, PACE, 10.0)
    assert used.tokens is not None
    assert used.tokens.measure(10.0) == 2000.0


def test_connections_that_share_a_debt_wait_until_each_has_paid_its_part() -> None:
    used = bucket()
    one, other = (Identity("u", "c", "127.0.0.1") for _ in range(2))
    assert used.waiting(10.0) == 0
    used.record(1200, 10.0, one)
    used.record(600, 10.0, other)
    assert used.waiting(10.0) == 2
    assert used.waiting(10.5) == 1, "one owes 200, the other 600, and each has got 250"
    assert used.waiting(10.9) == 0


def test_a_debt_without_connections_is_one_that_waits() -> None:
    used = bucket()
    used.record(1800, 10.0)
    assert used.waiting(10.5) == 1
    assert used.waiting(10.9) == 0
    used.waiters = 7
    assert used.waiting(10.9) == 7


@pytest.mark.parametrize("rule", [PACE, WINDOW, SHORT])
def test_nothing_is_admitted_while_all_processes_are_over_the_limit(rule: RateRule) -> None:
    used = bucket(rule)
    used.close(3.0, 10.0)
    assert used.closed(12.9)
    assert used.wait(11.0) == pytest.approx(2.0)
    assert used.record(1.0, 12.0) == pytest.approx(1.0)
    used.close(0.0, 12.0)
    assert not used.closed(12.0)
    assert (used.wait(12.0), used.record(1.0, 12.0)) == (0.0, 0.0)


def test_a_wait_for_other_processes_is_as_short_as_any_and_no_demand() -> None:
    used = bucket(SHORT)
    used.close(9.0, 10.0)
    assert used.record(1.0, 10.0) == 2.0
    assert used.waiting(10.0) == 0
    assert used.record(3000.0, 10.0) == 2.0
    assert used.waiting(10.0) == 1
