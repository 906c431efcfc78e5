"""What is owed beside Kafka's rate; test_bucket.py has whole buckets without tokens."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import OBSERVE
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.measure.window_limit import WindowLimit

SHORT = RateRule(max_throttle_seconds=2.0)
REPAYS = RateRule(repays=True)
LIMIT = 1000.0


def window(rule: RateRule) -> WindowLimit:
    made = WindowLimit()
    made.configure(LIMIT, rule, 10.0)
    return made


def test_a_wait_that_kafkas_rate_does_not_forget_is_its_own() -> None:
    made = window(SHORT)
    assert made.record(500.0, 1.5, LIMIT, SHORT, 10.0) == 1.5
    assert made.wait(0.0, LIMIT, 10.0) == 0.0
    assert made.as_new(10.0)


def test_a_longer_wait_is_remembered_until_its_end() -> None:
    made = window(SHORT)
    assert made.record(5000.0, 5.0, LIMIT, SHORT, 10.0) == 5.0
    assert made.wait(0.0, LIMIT, 12.0) == pytest.approx(3.0)
    assert made.record(1000.0, 0.0, LIMIT, SHORT, 12.0) == pytest.approx(4.0), "a use postpones the end"
    made.give_back(1000.0, LIMIT, 12.0)
    assert [made.as_new(now) for now in (14.9, 15.0)] == [False, True]


def test_the_rest_of_a_wait_is_paid_at_a_new_limit() -> None:
    made = window(SHORT)
    made.record(5000.0, 5.0, LIMIT, SHORT, 10.0)
    made.rescale(LIMIT, 2.0 * LIMIT, 11.0)
    assert made.wait(0.0, 2.0 * LIMIT, 11.0) == pytest.approx(2.0)
    made.configure(LIMIT, RateRule(mode=OBSERVE), 11.0)
    assert made.wait(0.0, LIMIT, 11.0) == 0.0


def test_an_allowance_is_repaid_if_the_rule_says_so() -> None:
    made = window(REPAYS)
    assert made.allowance is not None
    burst = made.allowance.burst
    assert made.record(burst + 3000.0, 0.0, LIMIT, REPAYS, 10.0) == pytest.approx(3.0)
    assert made.wait(0.0, LIMIT, 11.0) == pytest.approx(2.0)
    made.give_back(2000.0, LIMIT, 11.0)
    assert made.wait(0.0, LIMIT, 11.0) == 0.0
    made.configure(LIMIT, SHORT, 11.0)
    assert made.allowance is None


def test_a_new_connection_of_a_known_user_has_others_ahead() -> None:
    one, same_user, stranger = (Identity(user, "c", "127.0.0.1") for user in ("u", "u", "v"))
    made = window(SHORT)
    assert made.ahead_seconds(one, 500.0, 1.5, LIMIT) == 0.0
    assert made.ahead_seconds(one, 500.0, 2.0, LIMIT) == 0.0
    assert made.ahead_seconds(same_user, 500.0, 2.5, LIMIT) == pytest.approx(2.0)
    assert made.ahead_seconds(stranger, 500.0, 3.0, LIMIT) == 0.0
    made.ahead_seconds(one, 500.0, 0.0, LIMIT)
    another = Identity("u", "c", "127.0.0.1")
    assert made.ahead_seconds(another, 500.0, 1.0, LIMIT) == 0.0, "the bucket has been within its limit"


def test_an_earlier_wait_that_is_shorter_does_not_hide_that_of_kafkas_rate() -> None:
    """The limit was small when the earlier wait began, and is not any more."""
    made = window(SHORT)
    made.record(5000.0, 5.0, LIMIT, SHORT, 10.0)
    made.rescale(LIMIT, 100.0 * LIMIT, 10.0)
    assert made.record(1000.0, 1.5, 100.0 * LIMIT, SHORT, 10.0) == 1.5


def test_without_a_part_it_is_the_whole_limit() -> None:
    made = window(SHORT)
    made.share(1.0, SHORT.window, False, 10.0)
    assert not made.shared
    assert made.mean_part(10.0, 10.0) == 1.0


def test_the_mean_part_follows_the_part_within_a_window() -> None:
    made = window(SHORT)
    kafkas = SHORT.window
    made.share(0.1, kafkas, False, 10.0)
    assert made.shared
    assert made.mean_part(10.0, 10.0) == 0.1, "nothing of the whole limit was used"
    made.share(0.9, kafkas, True, 20.0)
    assert [made.mean_part(10.0, now) for now in (20.0, 25.0, 30.0, 40.0)] == pytest.approx(
        [0.1, 0.5, 0.9, 0.9]
    )
    made.share(0.1, kafkas, True, 25.0)
    assert made.mean_part(10.0, 30.0) == pytest.approx(0.5)


def test_what_was_used_of_the_whole_limit_counts() -> None:
    made = window(SHORT)
    made.share(0.5, SHORT.window, True, 10.0)
    assert [made.mean_part(10.0, now) for now in (10.0, 15.0, 20.0)] == pytest.approx([1.0, 0.75, 0.5])


def test_what_others_owe_is_inherited() -> None:
    made, other, third = window(REPAYS), window(REPAYS), window(REPAYS)
    for each in (other, third):
        each.record(15_000.0, 20.0, LIMIT, REPAYS, 10.0)
    made.inherit([other, third], 10.0)
    assert made.wait(0.0, LIMIT, 10.0) == pytest.approx(40.0)
    assert made.allowance is not None
    assert made.allowance.measure(10.0) == pytest.approx(-2.0 * (15_000.0 - made.allowance.burst))
