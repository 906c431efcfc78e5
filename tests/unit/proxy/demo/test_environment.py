"""The set-up of `make demo`: its steps, their display, and the list of packages that it installs."""

import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from proxy.demo import environment
from proxy.demo.environment import FETCHER, LOCKED, Display, SetUpFailed, Step
from tests.unit.proxy.demo.conftest import FakeJava

ROOT = Path(__file__).parents[4]


def script(text: str) -> list[str]:
    return [sys.executable, "-uc", text]


def test_a_step_counts_lines() -> None:
    step = Step("jars", script("print('fetched a\\nother\\nfetched b')"), "fetched", 2)
    step.end()
    assert str(step) == "jars 2 of 2"
    assert not step.running


def test_steps_are_shown_side_by_side(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "_SHOWN_EVERY_SECONDS", 0.01)
    Display().follow(Step("one", script("import time; time.sleep(0.3)")), Step("two", script("")))
    assert re.match(r"\[ +\d s\] one, two\n", capsys.readouterr().out)


def test_a_failed_step_shows_the_end_of_its_output() -> None:
    output = "for n in range(100): print('line', n)\nraise SystemExit(3)"
    with pytest.raises(SetUpFailed) as failure:
        Display().follow(Step("packages", script(output)))
    lines = str(failure.value).splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("packages failed:", "line 99", 21)


def test_a_failure_stops_the_other_step() -> None:
    slow = Step("slow", script("import time; time.sleep(600)"))
    started = time.monotonic()
    failing = Step("failing", script("raise SystemExit(1)"))
    with pytest.raises(SetUpFailed, match="failing"):
        Display().follow(failing, slow)
    assert time.monotonic() - started < 60
    assert not slow.running


def test_the_commands(fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run: list[Sequence[str]] = []
    popen = subprocess.Popen

    def start(command: Sequence[str], **options: object) -> object:
        if "-version" in command:
            return popen(command, **options)  # type: ignore[call-overload]
        run.append(command)
        return popen([sys.executable, "-c", ""], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.chdir(ROOT)
    environment.prepare(tmp_path)
    commands = [" ".join(command) for command in run]
    assert [bool(re.search("-m venv ", command)) for command in commands] == [True] + [False] * 4
    assert all("--require-hashes" in command for command in (commands[1], commands[2]))
    assert "--no-deps" in commands[4]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pip").touch()
    run.clear()
    environment.prepare(tmp_path)
    assert not [command for command in run if "venv" in command]


def test_the_locked_packages_satisfy_the_project() -> None:
    """Whoever adds a dependency to pyproject.toml must lock it: see CONTRIBUTING.md."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for name, more in (("proxy", ()), ("demo", extras["demo"]), ("pipeline", extras["pipeline"])):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        locked = set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))
        wanted = {re.split(r"[<>=]", each)[0] for each in (*project["dependencies"], *more)}
        assert wanted <= locked
        assert text.count("--hash=sha256:") >= len(locked)
        assert "://" not in text
    assert "setuptools==" in (ROOT / LOCKED).read_text()
    fetcher = set(re.findall(r"^\S+==\S+", (ROOT / FETCHER).read_text(), re.MULTILINE))
    assert fetcher <= set(re.findall(r"^\S+==\S+", (ROOT / LOCKED).read_text(), re.MULTILINE))
