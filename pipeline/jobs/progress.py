"""A progress line on a terminal."""

import threading
from typing import Final

from pyspark.sql import SparkSession
from rich.console import Console

_EVERY_SECONDS: Final = 0.5
"""Between two updates of the line."""


class Progress:
    """Shows the number of finished tasks; shows nothing if the output is not a terminal."""

    def __init__(self, spark: SparkSession, console: Console) -> None:
        self._tracker: Final = spark.sparkContext.statusTracker()
        self._status: Final = console.status("working")
        self._ended: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._watch, daemon=True)
        if console.is_terminal:
            self._status.start()
            self._thread.start()

    def stop(self) -> None:
        """Remove the line; call it before the session ends."""
        if self._thread.is_alive():
            self._ended.set()
            self._thread.join()
            self._status.stop()

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_SECONDS):
            stages = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            if known:
                done = sum(stage.numCompletedTasks for stage in known)
                tasks = sum(stage.numTasks for stage in known)
                self._status.update(f"stage {known[-1].stageId}: {done} of {tasks} tasks")
