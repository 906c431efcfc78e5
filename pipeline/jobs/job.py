"""Job: one run of a command, with its Spark session, its events, its folder and its messages."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from pipeline.errors import InputError
from pipeline.filesystem import FilePath
from pipeline.jobs.progress import Progress
from pipeline.session import make_session
from pipeline.sources import KAFKA, Source, parse_source
from pipeline.tables import Events, Quality, all_events, table_folder, write_table
from pipeline.window import Window


@dataclass(frozen=True, slots=True)
class Options:
    """The options of every job."""

    events: str
    out: str
    window: Window
    master: str = "local[*]"
    settings: tuple[tuple[str, str], ...] = ()
    """Spark settings."""
    kafka_settings: tuple[tuple[str, str], ...] = ()
    """Kafka client settings, for events in a topic."""
    form: str | None = None
    """The format of the files with events; None: the files tell."""


class Job:
    """A context manager: it stops the Spark session that it has started, and leaves an existing one alone."""

    def __init__(self, options: Options, console: Console) -> None:
        self.options: Final = options
        self.console: Final = console
        self._source: Final = parse_source(options.events, options.kafka_settings, options.form)
        self._spark: SparkSession | None = None
        self._events: Events | None = None
        self._kept: DataFrame | None = None
        self._progress: Progress | None = None
        self._shared = SparkSession.getActiveSession() is not None

    def __enter__(self) -> Self:
        make_folder(self.options.out)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
        if self._kept is not None:
            self._kept.unpersist()
        if self._spark is not None and not self._shared:
            self._spark.stop()

    @property
    def spark(self) -> SparkSession:
        """The session, started at first use, so that invalid options fail before Spark starts."""
        if self._spark is None:
            self.say(f"Starting Spark on {self.options.master}")
            kafka = self._source.kind == KAFKA
            settings = dict(self.options.settings)
            self._spark = make_session(self.options.master, kafka=kafka, settings=settings)
            self._progress = Progress(self._spark, self.console)
        return self._spark

    def events(self, some: Callable[[DataFrame], DataFrame] = all_events) -> DataFrame:
        """Return the events of the window, or `some` of them, each once."""
        if self._events is None:
            self._events = Events(self.spark, self._source, self.options.window)
        return self._events.events(some)

    def kept_events(self) -> DataFrame:
        """Return all events, persisted on disk while the job runs, for jobs that read them more than once."""
        if self._kept is None:
            self._kept = self.events().persist(StorageLevel.DISK_ONLY)
        return self._kept

    def write(self, name: str, table: DataFrame) -> str:
        """Write a table of events(), and quarantine what is not an event; return the table's folder."""
        folder = write_table(table, self.options.out, name)
        rows = self.spark.read.parquet(folder).count()
        self.say(f"{folder}: {rows:,} rows")
        self.report_quality()
        return folder

    def write_text(self, name: str, text: str) -> str:
        """Write a file in the folder of --out; return its path."""
        file = FilePath(self.spark, table_folder(self.options.out, name))
        file.write_text(text)
        return str(file)

    def say(self, text: str, style: str = "") -> None:
        """Print a line for the user."""
        self.console.print(text, style=style, markup=False, soft_wrap=True)

    @property
    def source(self) -> Source:
        """The source of the events."""
        return self._source

    def report_quality(self, *, add: bool = False) -> Quality:
        """Print how many events were read, and where the quarantine table is."""
        assert self._events is not None
        quality = self._events.quarantine(self.options.out, add=add)
        self.say(f"{quality.read:,} events read")
        if quality.bad:
            folder = f"{self.options.out}/quarantine"
            self.say(
                f"{quality.bad:,} of them are not events: {folder} has them with the reason", style="bold red"
            )
        return quality


def make_folder(out: str) -> None:
    """Make the local folder of --out; Spark makes folders of other file systems. Raises InputError."""
    if "://" in out:
        return
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out} cannot be made: {error.strerror}") from error
