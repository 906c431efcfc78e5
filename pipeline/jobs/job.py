"""Job: one run of a command, with its Spark session, its events, its folder and its messages."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from pipeline.cluster.access import PLAINTEXT, BrokerAccess
from pipeline.errors import InputError
from pipeline.jobs.progress import Progress
from pipeline.lake.lake import Lake
from pipeline.spark.python_workers import start_workers
from pipeline.spark.session import JavaRows, make_session, merged, stop
from pipeline.storage.arrow_files import leave_little_to_java
from pipeline.storage.filesystem import FilePath, literal
from pipeline.storage.formats import PARQUET, packages
from pipeline.storage.formats import settings as settings_of
from pipeline.storage.locks import locked
from pipeline.storage.observed import Observed
from pipeline.storage.sources import KAFKA, Source, parse_source
from pipeline.storage.tables import QUARANTINE_TABLE, Events, Quality, all_events, table_folder
from pipeline.transforms.arrays.summing import Summing
from pipeline.transforms.events import with_period
from pipeline.window import Window

_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Options:
    """The options of every job."""

    events: str
    out: str
    window: Window
    master: str | None = None
    """None: the master of `spark-submit`, or this machine."""
    settings: tuple[tuple[str, str], ...] = ()
    """Spark settings."""
    kafka_settings: tuple[tuple[str, str], ...] = ()
    """Kafka client settings, for events in a topic; they override those of `access`."""
    form: str | None = None
    """The format of the files with events; None: decided by the names of the files."""
    access: BrokerAccess = PLAINTEXT
    """TLS and login of connections to brokers."""
    table_format: str = PARQUET
    catalog_table: str | None = None
    """The name of the job's table in a catalog."""
    with_late: bool = False
    """Whether events count that a stream wrote to `late/`."""


class Job:
    """A context manager: it stops the Spark session that it has started, and leaves an existing one alone."""

    def __init__(self, options: Options, console: Console) -> None:
        self.options: Final = options
        self.console: Final = console
        source = parse_source(options.events, options.kafka_settings, options.form)
        if source.kind == KAFKA:
            settings = {**dict(options.access.of_java()), **dict(source.settings)}
            source = replace(source, settings=tuple(settings.items()))
        self._source: Final = source
        self._spark: SparkSession | None = None
        self._events: Events | None = None
        self._kept: DataFrame | None = None
        self._progress: Progress | None = None
        self._known_period: Window | None = None
        """The period of the tables, once the events have been read."""
        self._java_rows = JavaRows.EVENTS
        self._shared = SparkSession.getActiveSession() is not None
        """Whether another program has started the session, and stops it."""
        self._locks: Final = ExitStack()
        self._claimed: Final[set[str]] = set()

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
            stop(self._spark)
        self._locks.close()

    def claim(self, name: str) -> None:
        """Keep other runs from writing a table until this job ends. Raises PipelineError if one writes it."""
        if name not in self._claimed:
            self._locks.enter_context(locked(self.options.out, name))
            self._claimed.add(name)

    @property
    def spark(self) -> SparkSession:
        """The session, started at first use, so that invalid options fail before Spark starts."""
        if self._spark is None:
            self.say("Starting Spark")
            options = self.options
            forms = {options.table_format, self._source.kind}
            self._spark = make_session(
                options.master,
                kafka=self._source.kind == KAFKA,
                packages=packages(forms),
                settings=merged(settings_of(forms, options.out), dict(options.settings)),
                java_rows=self._java_rows,
            )
            if self._java_rows is not JavaRows.EVENTS and not self._shared:
                start_workers(self._spark)
            self.say(f"Spark runs on {self._spark.sparkContext.master}")
            self._progress = Progress(self._spark, self.console)
        return self._spark

    @property
    def lake(self) -> Lake:
        """The tables under --out, in the format of --format."""
        options = self.options
        return Lake(self.spark, options.out, options.table_format, options.catalog_table)

    def events(self, known: DataFrame | None = None) -> DataFrame:
        """Return the events of the window, each once, without those that `known` has."""
        return self._source_events().events(known)

    def sums(self, summing: Summing, some: Callable[[DataFrame], DataFrame] = all_events) -> DataFrame:
        """Return sums over the events of the window, each once; see Events.sums()."""
        if self._source.kind == PARQUET and leave_little_to_java(self._source.place):
            self._java_rows = JavaRows.TENANTS if summing.by_tenant else JavaRows.SUMS
        return self._source_events().sums(summing, some)

    def _source_events(self) -> Events:
        if self._events is None:
            self._events = self.events_of(self.options.window)
        return self._events

    def events_of(self, window: Window) -> Events:
        """Return the source's events of another window. What is invalid in it is not counted."""
        return Events(self.spark, self._source, window, with_late=self.options.with_late)

    def kept_events(self) -> DataFrame:
        """Return all events, persisted on disk while the job runs, for jobs that read them more than once."""
        if self._kept is None:
            self._kept = self.events().persist(StorageLevel.DISK_ONLY)
        return self._kept

    def period(self) -> Window:
        """Return the period of the tables; call it after an action on events()."""
        assert self._events is not None
        return self._events.period()

    @contextmanager
    def with_period(self, name: str, table: DataFrame) -> Iterator[DataFrame]:
        """Yield the table of events() with the columns of the period.

        If the window lacks an end, the end comes from the events. Unless the statistics of files tell it, it
        is known only after all events have been read. The rows of the first table, which are few, are
        therefore written to a temporary folder first.
        """
        rows = FilePath(self.spark, table_folder(self.options.out, name)).beside("rows")
        # A run that was killed has left them.
        rows.delete()
        known = self._known_period
        if known is None and self._events is not None:
            known = self._events.known_period()
        if known is not None:
            yield with_period(table, known)
            return
        try:
            table.write.mode("overwrite").parquet(str(rows))
            found = self.spark.read.schema(table.schema).parquet(literal(str(rows)))
            self._known_period = self.period()
            yield with_period(found, self._known_period)
        finally:
            rows.delete()

    def warn_of_parts(self, hours: int = 1) -> None:
        """Say so if the window has a part of a period of so many hours: the rows of it are of that part."""
        window, length = self.options.window, hours * _HOUR_MS
        ends = {"--from": window.start_ms, "--to": window.end_ms}
        for option, end in ends.items():
            if end is not None and end % length:
                period = "an hour" if hours == 1 else "a day (UTC)"
                self.say(
                    f"{option} is within {period}: the rows of it count only the events in the window", "bold"
                )

    def write(self, name: str, table: DataFrame) -> str:
        """Write a table of events(), and quarantine invalid events; return the table's place."""
        self.claim(name)
        lake = self.lake
        with self.with_period(name, table) as rows:
            counted = Observed(rows, rows=F.count(F.lit(1)))
            place = lake.replace(counted.table, name)
        self.say(f"{place}: {counted.get(lambda: lake.read(name))['rows']:,} rows")
        self.report_quality()
        return place

    def write_by_date(self, name: str, table: DataFrame, *, whole_days: bool = False) -> None:
        """Write a table of events() that has an `hour`, and quarantine invalid events."""
        self.claim(name)
        window = self.options.window
        with self.with_period(name, table) as rows:
            counted = Observed(rows, rows=F.count(F.lit(1)))
            written = self.lake.replace_dates(counted.table, name, window, whole_days=whole_days)
        self.say(f"{written.folder}: {counted.get(lambda: written.rows)['rows']:,} rows")
        if written.removed:
            self.say(
                f"{written.folder}: removed {', '.join(map(str, written.removed))}, for which there are no "
                "events",
                "bold",
            )
        self.report_quality()

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
        self._report_late(quality)
        self.report_quarantine(quality.bad, quality.contradicting)
        return quality

    def _report_late(self, quality: Quality) -> None:
        """Say how many events of this period, and of the one before, were too late for the tables."""
        folder = f"late/ beside {self._source.place}"
        if quality.late:
            self.say(
                f"{quality.late:,} events of the period came too late and do not count; {folder} has them. "
                "Run the job again with --with-late to count them, too",
                "bold",
            )
        if quality.late_before:
            self.say(
                f"{quality.late_before:,} events of the period before came too late; {folder} has them. If "
                "the tables or the bill of that period lack them, run the job again for it with --with-late",
                "bold",
            )

    def report_quarantine(self, bad: int, contradicting: int) -> None:
        """Print the numbers of events in the quarantine table."""
        folder = table_folder(self.options.out, QUARANTINE_TABLE)
        if bad:
            self.say(f"{bad:,} of them are invalid; {folder} has them with the reasons", "bold red")
        if contradicting:
            self.say(
                f"{contradicting:,} of them differ from an earlier event with the same identity and do not "
                f"count; {folder} has them",
                "bold red",
            )


def make_folder(out: str) -> None:
    """Make the local folder of --out; Spark makes folders of other file systems. Raises InputError."""
    if "://" in out:
        return
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder --out {out}: {error.strerror}") from error
