"""Lengths of runs, and outcomes that are kept."""

from pathlib import Path
from typing import Any, cast

import pytest

from bench.soak.scenario import Outcome, Run, has_passed, result_file, save


@pytest.mark.parametrize(
    ("short", "scale", "amount"), [(False, 1.0, 200), (False, 0.2, 40), (False, 0.001, 1), (True, 0.2, 2)]
)
def test_amounts(short: bool, scale: float, amount: int, tmp_path: Path) -> None:
    assert Run(cast("Any", None), tmp_path, short, scale).amount(200, 2) == amount


def test_only_what_has_passed_need_not_run_again(tmp_path: Path) -> None:
    file = result_file("restarts", short=False, results=tmp_path)
    assert not has_passed(file)
    outcome = Outcome(figures={"restarts": 2})
    save(outcome, file, scale=1.0)
    assert has_passed(file)
    assert not has_passed(result_file("restarts", short=True, results=tmp_path))
    outcome.check(True, "not noted")
    outcome.check(False, "one message is lost")
    save(outcome, file)
    assert not has_passed(file)
    assert outcome.failures == ["one message is lost"]
