"""The progress line: only on a terminal, and gone when the job ends."""

import io
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from pipeline.jobs.progress import Progress
from tests.support.waiting import wait_until


class Tracker:
    """Spark's status tracker with two stages; one has ended before it is asked about."""

    def statusTracker(self) -> "Tracker":
        return self

    def getActiveStageIds(self) -> list[int]:
        return [4, 5, 6]

    def getStageInfo(self, stage: int) -> Any:
        return None if stage == 4 else SimpleNamespace(stageId=stage, numCompletedTasks=stage, numTasks=10)


def progress(*, terminal: bool) -> tuple[Progress, io.StringIO]:
    output = io.StringIO()
    spark: Any = SimpleNamespace(sparkContext=Tracker())
    return Progress(spark, Console(file=output, force_terminal=terminal, width=80)), output


def test_a_terminal_shows_the_tasks_of_all_stages() -> None:
    shown, output = progress(terminal=True)
    try:
        wait_until(lambda: "11 of 20" in output.getvalue(), "the number of tasks")
        assert "stage 6" in output.getvalue()
    finally:
        shown.stop()
    ended = output.getvalue()
    shown.stop()
    assert output.getvalue() == ended


def test_a_file_gets_no_progress() -> None:
    shown, output = progress(terminal=False)
    shown.stop()
    assert output.getvalue() == ""
