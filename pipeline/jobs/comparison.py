"""The period before that of a report: what each tenant used and paid then."""

from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.errors import InputError
from pipeline.inputs.prices import Prices
from pipeline.jobs.job import Job
from pipeline.report.figures import Before, Key, Use
from pipeline.report.units import instant
from pipeline.storage.filesystem import literal
from pipeline.storage.formats import PARQUET, format_of
from pipeline.storage.sources import local_path
from pipeline.storage.tables import has_rows, table_folder
from pipeline.transforms.chargeback import bill
from pipeline.transforms.tenants import SUMS, added
from pipeline.window import previous

_CHARGEBACK = "chargeback"
_QUIET_MS = 3_600_000
"""Clusters rarely have no traffic for so long, so events are more likely to be deleted."""


def before(job: Job, prices: Prices | None, folder: str | None) -> Before | None:
    """Return the use in the period before: from the table of the bill in `folder`, or else from the events.
    None if nothing is known of it, which the command says.
    """
    found = _of_events(job, prices) if folder is None else _of_bill(job, prices, folder)
    if found is not None:
        begin, end = (instant(time) for time in found.period)
        job.say(f"Compared with {begin} to {end}, UTC: {len(found.uses):,} tenants")
    return found


def _of_events(job: Job, prices: Prices | None) -> Before | None:
    """Return the use in the period before, from the events; None if that is not possible."""
    window = previous(job.options.window)
    if window is None or window.start_ms is None or window.end_ms is None:
        job.say("Compared with no other period: without --previous, that takes both --from and --to")
        return None
    period = utc(window.start_ms / 1000), utc(window.end_ms / 1000)
    source = job.events_of(window)
    sums = added(source.sums(SUMS))
    uses = read_uses(sums if prices is None else bill(sums, prices))
    if not uses:
        begin, end = map(instant, period)
        job.say(f"Compared with no other period: there are no events from {begin} to {end}, UTC")
        return None
    _warn_of_retention(job, window.start_ms, source.begin_ms())
    return Before(period, uses)


def _warn_of_retention(job: Job, start_ms: int, begin_ms: int | None) -> None:
    """Say so if the source may have had earlier events of the period, which retention has deleted."""
    if begin_ms is not None and begin_ms - start_ms >= _QUIET_MS:
        job.say(
            f"The first event of the period before is of {instant(utc(begin_ms / 1000))}, UTC; if --events "
            "lost earlier ones, for example by a topic's retention, the comparison is with a part of that "
            "period: use --previous with the report of it",
            "bold",
        )


def _of_bill(job: Job, prices: Prices | None, folder: str) -> Before | None:
    """Return the use in a bill, the table `chargeback/` in the folder. Raises InputError."""
    table = table_folder(local_path(folder), _CHARGEBACK)
    if not has_rows(job.spark, table):
        raise InputError(
            f"--previous {folder}: there is no table {_CHARGEBACK}/; expected the --out of an earlier report "
            "with --prices"
        )
    form = format_of(job.spark, table)
    if form != PARQUET:
        # Its files also have the bills of earlier runs.
        raise InputError(
            f"--previous {folder}: {table} is a table in the format {form}; expected the {PARQUET} of an "
            "earlier report with --prices"
        )
    rows = job.spark.read.parquet(literal(table))
    seen = rows.select(
        *[F.unix_millis(F.col(name)).alias(name) for name in ("from", "to")], "currency"
    ).distinct()
    found = seen.take(2)
    if not found or found[0]["from"] is None or found[0]["to"] is None:
        job.say(f"Compared with no other period: {table} has no tenants")
        return None
    if len(found) > 1:
        raise InputError(f"--previous {folder}: {table} has several periods or currencies; expected one")
    if prices is not None and found[0].currency != prices.currency:
        raise InputError(
            f"--previous {folder}: {table} is in {found[0].currency}, and --prices in {prices.currency}"
        )
    period = utc(found[0]["from"] / 1000), utc(found[0]["to"] / 1000)
    return Before(period, read_uses(rows if prices else rows.drop("amount")), billed=True)


def read_uses(table: DataFrame) -> dict[Key, Use]:
    """Return the use of each tenant in a table of tenants, with or without amounts."""
    priced = "amount" in table.columns
    return {
        (row.cluster, row.user, row.client_id): Use(
            row.bytes_in, row.bytes_out, row.requests, row.partition_hours, row.amount if priced else None
        )
        for row in table.collect()
    }


def utc(seconds: float) -> datetime:
    """The time without a zone, in UTC. Spark itself converts times to the zone of this machine."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
