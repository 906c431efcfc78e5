"""The simulation in its shortest form: every rule is checked, and none is broken."""

from bench.sharing.crowd import run
from bench.sharing.simulated_crowd import Plan


def test_the_rules_hold_under_faults() -> None:
    result = run(Plan(processes=5, entities=100, hot=4, quiet=6.0, faults=6.0))
    assert result.broken == []
    assert len(result.figures) == 17
    assert result.pictures["sharing-crowd.svg"].lines
