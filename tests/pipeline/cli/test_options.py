"""The options of the command, and its exit codes."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result
from pyspark.errors import PySparkException

from pipeline.cli.main import main
from pipeline.errors import InputError, PipelineError
from pipeline.jobs import batch, report
from pipeline.jobs.job import Job
from tests.support.messages.usage_events import make_event, write_lines

RunJob = Callable[..., Result]
EVERY_JOB: Final = tuple(sorted(main.commands.keys() - {"prepare"}))


@pytest.mark.parametrize("job", EVERY_JOB)
def test_every_command_has_the_options_of_a_job(job: str) -> None:
    options = {name for parameter in main.commands[job].params for name in parameter.opts}
    assert {
        "--events",
        "--out",
        "--from",
        "--to",
        "--master",
        "--conf",
        "--kafka",
        "--events-format",
    } <= options


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (InputError("the reason"), 2),
        (PipelineError("the reason"), 1),
        (PySparkException("the reason"), 1),
    ],
)
def test_an_error_is_a_sentence_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, exit_code: int
) -> None:
    def fail(job: Job) -> None:
        raise error

    monkeypatch.setattr(batch, "write_throttle", fail)
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    result = CliRunner().invoke(main, ["throttle", "--events", str(lines), "--out", str(tmp_path / "out")])
    assert result.exit_code == exit_code
    (line,) = result.stderr.splitlines()
    assert line.startswith("quota-pipeline: ")
    assert "the reason" in line
    assert result.stdout == ""


def test_a_job_gets_the_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A value of --conf may have an equals sign; the folder is the same with a slash behind it."""
    jobs: list[Any] = []
    monkeypatch.setattr(batch, "write_usage", lambda job, by: jobs.append((job.options, by)))
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    settings = ("--conf", "spark.a=1", "--conf", "spark.b=x=y", "--kafka", "security.protocol=SSL")
    window = ("--from", "2026-01-01", "--to", "2026-01-02")
    arguments = ("usage", "--events", str(lines), "--out", f"{tmp_path}/out/", "--by", "day")
    result = CliRunner().invoke(main, [*arguments, *settings, *window, "--master", "local[3]"])
    assert result.exit_code == 0, result.output
    ((options, by),) = jobs
    assert (by, options.out, options.master) == ("day", str(tmp_path / "out"), "local[3]")
    assert options.settings == (("spark.a", "1"), ("spark.b", "x=y"))
    assert options.kafka_settings == (("security.protocol", "SSL"),)
    assert options.window.end_ms - options.window.start_ms == 86_400_000


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--events", "/nowhere/events"), "/nowhere/events"),
        (("--events", ""), "--events is empty"),
        (("--events", "a" * 300), os.strerror(errno.ENAMETOOLONG)),
        (("--out", ""), "--out is empty"),
        (("--events", "kafka://host:9092"), "kafka://host:9092"),
        (("--from", "yesterday"), "'yesterday'"),
        (("--from", "2026-01-02", "--to", "2026-01-01"), "--to 2026-01-01"),
        (("--conf", "spark.x"), "--conf spark.x"),
        (("--kafka", "a"), "--kafka a"),
        (("--by", "week"), "'--by'"),
    ],
)
def test_wrong_input_names_its_place(
    run_job: RunJob, tmp_path: Path, arguments: tuple[str, ...], named: str
) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    result = run_job("usage", "--events", lines, "--out", tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert named in result.output


def test_recover_is_an_option_of_a_stream(run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    result = run_job("ingest", "--events", lines, "--out", tmp_path / "out", "--recover")
    assert result.exit_code == 2
    assert "--recover" in result.output
    assert "--stream" in result.output
    assert not (tmp_path / "out/events").exists()


@pytest.mark.parametrize("given", [True, False])
def test_a_report_has_prices_and_quotas_where_they_are_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: bool
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(report, "write_report", lambda job, options: found.append(options))
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    (tmp_path / "prices.yaml").write_text("{currency: CHF}")
    (tmp_path / "quotas.yaml").write_text("quotas: {clients: []}")
    options = [f"--prices={tmp_path}/prices.yaml", f"--quotas={tmp_path}/quotas.yaml"] if given else []
    result = CliRunner().invoke(main, ["report", "--events", str(lines), "--out", str(tmp_path), *options])
    assert result.exit_code == 0, result.output
    (made,) = found
    assert (made.prices is not None and made.prices.currency) == ("CHF" if given else False)
    assert (made.quotas is not None) == given
