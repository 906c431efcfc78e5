"""Job: one run of a command: its session, its events, its folder, and what it tells the user."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from pipeline.errors import InputError
from pipeline.jobs.progress import Progress
from pipeline.session import make_session
from pipeline.sources import KAFKA, Source, parse_source
from pipeline.tables import Events, Quality, all_events, write_table
from pipeline.window import Window


@dataclass(frozen=True, slots=True)
class Options:
    """What every job takes."""

    events: str
    out: str
    window: Window
    master: str = "local[*]"
    settings: tuple[tuple[str, str], ...] = ()
    """Of Spark."""
    kafka_settings: tuple[tuple[str, str], ...] = ()
    """Of Kafka's client, where the events are in a topic."""


class Job:
    """A context: the session ends with it, unless it was there before."""

    def __init__(self, options: Options, console: Console) -> None:
        self.options: Final = options
        self.console: Final = console
        self._source: Final = parse_source(options.events, options.kafka_settings)
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
        """Started when first asked for: what is wrong with the options is said before."""
        if self._spark is None:
            self.say(f"Starting Spark on {self.options.master}")
            kafka = self._source.kind == KAFKA
            settings = dict(self.options.settings)
            self._spark = make_session(self.options.master, kafka=kafka, settings=settings)
            self._progress = Progress(self._spark, self.console)
        return self._spark

    def events(self, some: Callable[[DataFrame], DataFrame] = all_events) -> DataFrame:
        """The source's events of the window, or `some` of them, each once."""
        if self._events is None:
            self._events = Events(self.spark, self._source, self.options.window)
        return self._events.events(some)

    def kept_events(self) -> DataFrame:
        """All of them, for who goes over them more than once: duplicates are looked for once, and the rest is
        kept on disk while the job runs. It need not fit into memory.
        """
        if self._kept is None:
            self._kept = self.events().persist(StorageLevel.DISK_ONLY)
        return self._kept

    def write(self, name: str, table: DataFrame) -> str:
        """Writes a table of events(), and quarantines what is no event; returns the table's folder."""
        folder = write_table(table, self.options.out, name)
        rows = self.spark.read.parquet(folder).count()
        self.say(f"{folder}: {rows:,} rows")
        self.report_quality()
        return folder

    def say(self, text: str, style: str = "") -> None:
        """A line for the user."""
        self.console.print(text, style=style, markup=False, soft_wrap=True)

    @property
    def source(self) -> Source:
        """Where the events come from."""
        return self._source

    def report_quality(self, *, add: bool = False) -> Quality:
        """Says what was read, and where that is which is no event."""
        assert self._events is not None
        quality = self._events.quarantine(self.options.out, add=add)
        self.say(f"{quality.read:,} events read")
        if quality.bad:
            folder = f"{self.options.out}/quarantine"
            self.say(f"{quality.bad:,} of them are none: {folder} has them and why", style="bold red")
        return quality


def make_folder(out: str) -> None:
    """The folder for --out, unless it is where only Spark can write; InputError where it cannot be made."""
    if "://" in out:
        return
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out} cannot be made: {error.strerror}") from error
