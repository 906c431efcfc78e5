"""What is made of the rates of a phase, and which of them break a rule."""

import pytest

from bench.soak.scenario import Outcome
from bench.soak.sharing import LIMIT, Phase, check, figures_of

QUIET = [0.0] * 21


def found(
    rates: list[float],
    *,
    short: bool = False,
    steady: bool = False,
    least: float = 0.9,
    clients_wait: bool = False,
) -> list[str]:
    """The failures of a phase with these rates of each second, as parts of the limit."""
    outcome = Outcome()
    phase = Phase("PHASE", 100.0, 100.0 + len(rates), steady, least, clients_wait)
    figures = figures_of([round(rate * LIMIT) for rate in rates], QUIET[: len(rates) + 1])
    check(phase, figures, outcome, short=short)
    return outcome.failures


def test_figures() -> None:
    rates = [LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, 2 * LIMIT]
    figures = figures_of(rates, [0.0] * 7)
    assert figures == {
        "mean": 1.167,
        "deviation": 0.319,
        "most_in_5_s": 1.2,
        "most_after_burst": 1.2,
        "around": [1.0, 1.0, 1.0, 1.0, 1.0, 2.0],
        "paused": 0.0,
    }


def test_a_pause_of_the_machine_is_taken_off_the_seconds_that_follow_it() -> None:
    figures = figures_of([LIMIT, 0, 2 * LIMIT, LIMIT, LIMIT, LIMIT], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert figures["most_in_5_s"] == 0.8
    assert figures["paused"] == 1.0


def test_a_phase_shorter_than_five_seconds_has_no_five() -> None:
    assert figures_of([LIMIT], [0.0, 0.0])["most_in_5_s"] == 0.0


@pytest.mark.parametrize(
    ("rates", "broken"), [([1.0] * 20, 0), ([1.0] * 10 + [1.06] * 5 + [1.0] * 5, 1), ([0.89] * 20, 1)]
)
def test_rules_of_a_phase_with_faults(rates: list[float], broken: int) -> None:
    assert len(found(rates)) == broken


@pytest.mark.parametrize(
    ("rates", "broken"), [([1.0] * 20, 0), ([0.97] * 20, 1), ([0.8, 1.0, 1.2, 1.0] * 5, 0)]
)
def test_rules_while_nothing_happens(rates: list[float], broken: int) -> None:
    assert len(found(rates, steady=True, least=0.98)) == broken


def test_uneven_rates_break_a_rule_only_while_nothing_happens() -> None:
    rates = [1.2, 0.8, 1.2, 0.8, 1.0] * 4
    assert found(rates) == []
    [uneven] = found(rates, steady=True)
    assert "0.179" in uneven


def test_a_short_run_only_has_a_mean() -> None:
    assert found([0.5, 1.8, 1.0], short=True) == []
    [failure] = found([1.5, 1.5, 1.5], short=True)
    assert "PHASE" in failure


@pytest.mark.parametrize(("before", "after", "broken"), [(0.4, 1.16, 0), (0.4, 1.18, 1), (0.6, 1.14, 1)])
def test_clients_that_could_not_send_have_the_burst_of_one_process(
    before: float, after: float, broken: int
) -> None:
    """A second of which 0.4 is used saves 0.6 seconds of the limit: 0.12 for each of the five that follow."""
    rates = [1.0] * 10 + [before] + [after] * 5 + [1.0] * 5
    assert len(found(rates, clients_wait=True)) == broken
    assert len(found(rates)) == 1, "not in a phase in which all can send"
