"""The command: which scenarios run, and its exit status."""

import sys
from pathlib import Path

import pytest

from bench.soak import __main__ as command
from bench.soak.scenario import Outcome, Scenario, result_file, save


def _run(monkeypatch: pytest.MonkeyPatch, results: Path, *arguments: str, fails: str = "") -> list[str]:
    ran: list[str] = []

    def run_one(scenario: Scenario, **options: object) -> list[str]:
        ran.append(scenario.name)
        outcome = Outcome(failures=["lost"] if scenario.name == fails else [])
        save(outcome, result_file(scenario.name, short=False, results=results))
        return outcome.failures

    monkeypatch.setattr(sys, "argv", ["soak", *arguments])
    monkeypatch.setattr(command, "run_one", run_one)
    monkeypatch.setattr(command, "raise_open_files", lambda: None)
    monkeypatch.setattr(
        command, "result_file", lambda name, short: result_file(name, short=short, results=results)
    )
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == int(fails in ran)
    return ran


def test_a_second_run_goes_on_with_what_has_not_passed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    everything = [each.name for each in command.SCENARIOS]
    assert _run(monkeypatch, tmp_path, fails="churn") == everything
    assert _run(monkeypatch, tmp_path) == ["churn"]
    assert _run(monkeypatch, tmp_path) == []
    assert _run(monkeypatch, tmp_path, "restarts") == ["restarts"]


def test_a_scenario_that_does_not_exist(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["soak", "nothing"])
    with pytest.raises(SystemExit):
        command.main()
    assert "nothing" in capsys.readouterr().err.splitlines()[-1]
