"""RateRule: when two rules are the same, and the rule that the configured algorithm gives."""

import pytest

from proxy.quota.limits.enforcement import OBSERVE, PACE, UNLIMITED, WINDOW, RateWindow
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.rate_rule import RateRule, byte_rate_rule
from tests.support.quotas.enforcement import enforcement

KEY = "producer_byte_rate"
PACED = RateRule(burst_seconds=1.0)
SAMPLED = RateRule()


@pytest.mark.parametrize("rule", [PACED, SAMPLED])
@pytest.mark.parametrize(
    "other",
    [
        RateRule(burst_seconds=2.0),
        RateRule(burst_seconds=1.0, window=RateWindow(3, 1.0)),
        RateRule(burst_seconds=1.0, window=RateWindow(11, 2.0)),
        RateRule(burst_seconds=1.0, max_throttle_seconds=2.0),
        RateRule(burst_seconds=1.0, max_debt_seconds=5.0),
        RateRule(burst_seconds=1.0, least_burst=1.0),
        RateRule(burst_seconds=1.0, averages=True),
        RateRule(burst_seconds=1.0, mode=OBSERVE),
    ],
)
def test_rules_differ_in_every_part(rule: RateRule, other: RateRule) -> None:
    assert rule.same(rule)
    assert not rule.same(other)
    assert not other.same(rule)


def test_an_observed_rule_remembers_no_debt_and_has_none_repaid() -> None:
    rule = RateRule(mode=OBSERVE, max_debt_seconds=5.0, repays=True)
    assert (rule.observed, rule.max_debt_seconds, rule.repays) == (True, 0.0, False)


@pytest.mark.parametrize(
    ("rule", "paced"),
    [
        (PACED, True),
        (SAMPLED, False),
        (RateRule(least_burst=1.0), True),
        (RateRule(burst_seconds=1.0, averages=True), False),
    ],
)
def test_tokens_limit_if_there_is_a_burst(rule: RateRule, paced: bool) -> None:
    assert rule.paced == paced


@pytest.mark.parametrize(("algorithm", "burst_seconds"), [(PACE, 2.0), (WINDOW, 0.0)])
def test_the_rule_of_a_byte_rate_is_the_configured_algorithm(algorithm: str, burst_seconds: float) -> None:
    settings = enforcement(
        algorithm=algorithm, burst_seconds=2.0, samples=3, modes={KEY: OBSERVE}, max_throttle_seconds=5.0
    )
    rule = byte_rate_rule(Limits({}, settings=settings), KEY)
    assert (rule.burst_seconds, rule.window.samples, rule.observed) == (burst_seconds, 3, True)
    assert rule.max_throttle_seconds == UNLIMITED, "byte rates have no bound"
