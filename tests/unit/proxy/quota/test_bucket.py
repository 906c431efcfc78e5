import pytest

from proxy.quota.bucket import IDLE_SECONDS, Bucket, Rule
from proxy.quota.limits import UNLIMITED

PACE = Rule(1.0, 11, 1.0)
WINDOW = Rule(0.0, 11, 1.0)


def bucket(rule=PACE, limit=1000.0):
    return Bucket("producer_byte_rate", "u", "", limit, rule, 10.0)


# rule, size of one use at 10.0, seconds to wait
WAITS = [
    (PACE, 1000, 0.0),
    (PACE, 1500, 0.5),
    (Rule(2.0, 11, 1.0), 2000, 0.0),
    (Rule(2.0, 11, 1.0), 2500, 0.5),
    (Rule(0.25, 11, 1.0), 500, 0.25),
    (WINDOW, 10_000, 0.0),
    (WINDOW, 15_000, 5.0),
    (Rule(0.0, 3, 2.0), 6000, 2.0),
]


@pytest.mark.parametrize(("rule", "size", "wait"), WAITS)
def test_the_rule_decides_the_wait(rule, size, wait):
    assert bucket(rule).record(size, 10.0) == pytest.approx(wait)


@pytest.mark.parametrize("rule", [PACE, WINDOW])
def test_the_shown_rate_is_kafkas_whatever_limits(rule):
    used = bucket(rule)
    used.record(500, 10.0)
    assert used.state(10.0).rate == pytest.approx(50.0)


def test_state_tells_all():
    used = bucket()
    used.count_throttle(2.0, 1, 20.0)
    used.count_throttle(0.5, 1, 21.0)
    used.count_throttle(0.25, 0, 21.0)
    state = used.state(22.0)
    assert (state.quota, state.user, state.client_id, state.limit) == ("producer_byte_rate", "u", "", 1000.0)
    assert (state.throttled_until, state.throttled_requests, state.throttle_seconds) == (22.0, 2, 2.75)


@pytest.mark.parametrize("rule", [PACE, WINDOW])
def test_a_lower_limit_throttles_at_once_for_what_was_used_before(rule):
    used = bucket(rule)
    used.record(1000, 10.0)
    used.configure(10.0, rule, 10.0)
    assert used.limit == 10.0
    assert used.record(0, 10.0) == pytest.approx(0.0 if rule is PACE else 90.0)
    used.record(1000, 10.0)
    assert used.record(0, 10.0) > 90.0


def test_a_debt_stays_and_is_paid_at_the_new_limit():
    used = bucket()
    used.record(2000, 10.0)
    used.configure(500.0, PACE, 10.0)
    assert used.record(0, 10.0) == pytest.approx(2.0)


@pytest.mark.parametrize("rule", [PACE, WINDOW])
def test_a_limit_that_goes_and_comes_back_finds_the_history(rule):
    used = bucket(rule)
    before = used.record(20_000, 10.0)
    assert before > 0
    used.configure(UNLIMITED, rule, 10.0)
    used.configure(1000.0, rule, 11.0)
    assert used.record(0, 11.0) == pytest.approx(before - 1.0, abs=1.0)
    assert used.record(0, 11.0) > 0


def test_from_pace_to_window_the_rate_carries_over():
    used = bucket()
    used.record(20_000, 10.0)
    used.configure(1000.0, WINDOW, 10.0)
    assert used.record(0, 10.0) == pytest.approx(10.0)


def test_from_window_to_pace_starts_without_debt():
    used = bucket(WINDOW)
    used.record(20_000, 10.0)
    used.configure(1000.0, PACE, 10.0)
    assert used.record(1000, 10.0) == 0.0
    assert used.record(1000, 10.0) == pytest.approx(1.0)


def test_another_window_starts_the_rate_anew():
    used = bucket(WINDOW)
    used.record(20_000, 10.0)
    used.configure(1000.0, Rule(0.0, 3, 1.0), 10.0)
    assert used.state(10.0).rate == 0.0
    assert used.record(3000, 10.0) == pytest.approx(1.0)


def test_idle_after_an_hour_without_a_record():
    used = bucket()
    assert not used.idle(10.0 + IDLE_SECONDS - 0.001)
    assert used.idle(10.0 + IDLE_SECONDS)
    used.record(1, 100.0)
    used.state(3000.0)
    assert not used.idle(100.0 + IDLE_SECONDS - 0.001)
    assert used.idle(100.0 + IDLE_SECONDS)
