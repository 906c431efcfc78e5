"""The pipeline's image and timer match the files that they copy and the commands that they run."""

import re
import runpy
import shlex
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from pipeline.cli.main import main

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/pipeline"
TEXT = re.sub(r"\\\n\s*", "", (FOLDER / "Containerfile").read_text())
DAGS = FOLDER / "airflow_dag.py"
SERVICE = ROOT / "deploy/systemd/quota-pipeline.service"
TIMER = ROOT / "deploy/systemd/quota-pipeline.timer"


def instructions(name: str) -> list[str]:
    return re.findall(rf"^\s*{name}\s+(.*)$", TEXT, re.MULTILINE)


def commands() -> list[list[str]]:
    lines = SERVICE.read_text().splitlines()
    return [shlex.split(line.removeprefix("ExecStart=")) for line in lines if line.startswith("ExecStart=")]


def parameters(words: list[str]) -> dict[str, Any]:
    """The options of a command of quota-pipeline; fails if they are not valid."""
    return main.commands[words[0]].make_context(words[0], words[1:]).params


def test_everything_copied_exists_and_reaches_the_build() -> None:
    copied = {source for line in instructions("COPY") if "--from" not in line for source in line.split()[:-1]}
    ignored = (FOLDER / "Containerfile.dockerignore").read_text().splitlines()
    assert copied == {line[1:] for line in ignored if line.startswith("!")}
    assert all((ROOT / source).exists() for source in copied)


def test_the_image_runs_the_command_as_a_user_that_is_not_root() -> None:
    [user] = instructions("USER")
    assert all(int(part) > 0 for part in user.split(":"))
    assert instructions("ENTRYPOINT") == ['["quota-pipeline"]']
    assert "--require-hashes -r requirements/pipeline.txt" in TEXT


def test_the_image_has_the_archive_of_classes() -> None:
    """root writes it: the user of the image cannot write to the environment."""
    before, _, after = TEXT.partition("\nUSER ")
    assert "quota-pipeline prepare" in before
    assert "quota-pipeline prepare" not in after


def test_the_service_ingests_and_bills_what_it_has_ingested() -> None:
    ingest, bill = commands()
    assert Path(ingest[0]).name == "quota-pipeline"
    assert (parameters(ingest[1:])["out"], Path(bill[0]).name) == (bill[1], "monthly-bill")
    # A run ingests what has come since the last one, so the last bill follows the last events that are no
    # late ones.
    [late, unit] = parameters(ingest[1:])["late"].split()
    assert f"$time {int(late) + 1} {unit} ago" in (FOLDER / "monthly-bill").read_text()


@pytest.mark.parametrize(
    ("time", "months"),
    [
        ("2026-02-28T23:10:00Z", [("2026-02", "2026-03-01")]),
        ("2026-12-31T23:59:00Z", [("2026-12", "2027-01-01")]),
        ("2027-01-01T00:10:00Z", [("2026-12", "2027-01-01"), ("2027-01", "2027-02-01")]),
        ("2026-03-03T23:10:00Z", [("2026-02", "2026-03-01"), ("2026-03", "2026-04-01")]),
        ("2026-03-04T00:10:00Z", [("2026-02", "2026-03-01"), ("2026-03", "2026-04-01")]),
        ("2026-03-05T00:10:00Z", [("2026-03", "2026-04-01")]),
    ],
)
def test_a_bill_is_of_a_calendar_month_and_is_completed(
    tmp_path: Path, time: str, months: list[tuple[str, str]]
) -> None:
    """Runs at the end of a month may fail, so those of the next four days compute its bill again."""
    stub = tmp_path / "quota-pipeline"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$*"\n')
    stub.chmod(0o755)
    done = subprocess.run(
        [str(FOLDER / "monthly-bill"), "/lake", "/bills", "/prices.yaml", time],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "TZ": "America/New_York"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = [parameters(line.split()) for line in done.stdout.splitlines()]
    assert [(each["start"], each["end"]) for each in found] == [(f"{month}-01", end) for month, end in months]
    assert [each["out"] for each in found] == [f"/bills/{month}" for month, _ in months]
    assert {(each["events"], each["prices"]) for each in found} == {("/lake/events", Path("/prices.yaml"))}
    assert all(each["with_late"] for each in found)


def test_the_commands_of_the_example_dags_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow is not installed for tests: stubs stand for what the file imports."""
    commands: dict[str, list[str]] = {}
    waits = MagicMock()
    operator = MagicMock(side_effect=lambda **task: commands.update({task["task_id"]: task["command"]}))
    for line in re.findall(r"^ *from ((?:airflow|docker)\S*) import", DAGS.read_text(), re.MULTILINE):
        monkeypatch.setitem(sys.modules, line, MagicMock(DockerOperator=operator, TimeDeltaSensor=waits))
    runpy.run_path(str(DAGS))
    ends = {"{{ data_interval_start | ds }}": "2026-02-01", "{{ data_interval_end | ds }}": "2026-03-01"}
    found = {}
    for name, words in commands.items():
        text = shlex.join(words)
        for end, day in ends.items():
            text = text.replace(end, day)
        found[name] = parameters(shlex.split(text))
    assert list(found) == ["ingest", "usage", "bill"]
    assert {found[name]["events"] for name in ("usage", "bill")} == {found["ingest"]["out"] + "/events"}
    # Ten minutes after the hour, the events of the hour are ingested.
    assert [call.kwargs["delta"] for call in waits.call_args_list] == [
        timedelta(hours=1),
        timedelta(days=3, hours=1),
    ]
    assert found["bill"]["with_late"]
    assert found["bill"]["out"] == "/lake/bills/2026-02-01"
    assert (found["bill"]["start"], found["bill"]["end"]) == ("2026-02-01", "2026-03-01")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """systemd-analyze requires the command to exist, so the test replaces it."""
    unit = tmp_path / SERVICE.name
    text = SERVICE.read_text()
    for program, *_ in commands():
        text = text.replace(f"={program}", f"={shutil.which('true')}")
    unit.write_text(text)
    timer = tmp_path / TIMER.name
    timer.write_text(TIMER.read_text())
    done = subprocess.run(
        ["systemd-analyze", "verify", str(timer), str(unit)], capture_output=True, text=True, check=False
    )
    assert unit.stem not in done.stderr
    assert done.returncode == 0, done.stderr
