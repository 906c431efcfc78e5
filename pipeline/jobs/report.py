"""The job that writes the report and its tables."""

from collections import defaultdict
from datetime import UTC, datetime
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from pipeline.csv_files import write_csv
from pipeline.filesystem import literal
from pipeline.history import History
from pipeline.jobs.job import Job
from pipeline.prices import Prices
from pipeline.quota_file import QuotaSet
from pipeline.report.charts import COLORS
from pipeline.report.labels import bucket_label, tenant_label
from pipeline.report.page import OTHERS, Bound, Charge, Figures, Headroom, Hour, render
from pipeline.tables import write_table
from pipeline.transforms.chargeback import chargeback
from pipeline.transforms.headroom import headroom
from pipeline.transforms.throttle import BOUND, throttle
from pipeline.transforms.totals import total
from pipeline.transforms.usage import usage

_TENANT: Final = ("cluster", "user", "client_id")


def write_report(job: Job, prices: Prices | None, quotas: QuotaSet | None) -> None:
    """Write `report.html`, and its tables as Parquet and CSV."""
    events = job.kept_events()
    hours = _keep_by_date(job, "usage", usage(events))
    waits = _keep_by_date(job, "throttle", throttle(events))
    charges = None if prices is None else _keep(job, "chargeback", chargeback(events, prices))
    limits = None if quotas is None else _keep(job, "headroom", headroom(events, quotas))
    quality = job.report_quality()
    tenants = _tenants(hours)
    clusters = sorted(row.cluster for row in hours.select("cluster").distinct().collect())
    several = len(clusters) > 1
    figures = Figures(
        clusters=clusters,
        hours=_hours(hours, list(tenants)[: len(COLORS)], several=several),
        tenants={_label(row, several): sums for row, sums in tenants.items()},
        bound=_bound(waits, several=several),
        throttle_hours=_throttle_hours(waits),
        charges=[] if charges is None else _charges(charges, several=several),
        currency="" if prices is None else prices.currency,
        headroom=[] if limits is None else _headroom(limits, several=several),
        bad_events=quality.bad,
        contradicting=quality.contradicting,
        period=_period(job),
    )
    file = job.write_text("report.html", render(figures))
    job.say(f"{file}: open it in a browser, or print it")


def _keep(job: Job, name: str, table: DataFrame) -> DataFrame:
    """Write the table as Parquet and CSV, and read it back, so that it is not computed again."""
    with job.with_period(name, table) as rows:
        folder = write_table(rows, job.options.out, name)
    written = job.spark.read.parquet(literal(folder))
    write_csv(written, f"{folder}.csv")
    return written


def _keep_by_date(job: Job, name: str, table: DataFrame) -> DataFrame:
    """Likewise, for a table that has an `hour`; the CSV file has the rows of this report only."""
    with job.with_period(name, table) as rows:
        written = History(rows, job.options.out, name, job.options.window).write()
        columns = rows.columns
    found = written.rows.select(*columns)
    write_csv(found, f"{written.folder}.csv")
    return found


def _label(row: Row, several: bool) -> str:
    """The label of a tenant; with its cluster if there are several."""
    return tenant_label(row.user, row.client_id, row.cluster if several else None)


def _tenants(table: DataFrame) -> dict[Row, tuple[int, int, int]]:
    """Bytes in, bytes out and requests by _TENANT, largest first."""
    sums = table.groupBy(F.struct(*_TENANT).alias("tenant")).agg(
        *[total(name).alias(name) for name in ("bytes_in", "bytes_out", "requests")]
    )
    largest = sums.orderBy(F.desc(F.col("bytes_in").cast("double") + F.col("bytes_out")), "tenant")
    return {row.tenant: (row.bytes_in, row.bytes_out, row.requests) for row in largest.collect()}


def _hours(table: DataFrame, named: list[Row], *, several: bool) -> list[Hour]:
    """The hourly sums of the `named` tenants, and of all others together."""
    is_named = F.lit(False)
    for tenant in named:
        is_named = is_named | reduce(Column.__and__, [F.col(name) == tenant[name] for name in _TENANT])
    sums = table.groupBy("hour", F.when(is_named, F.struct(*_TENANT)).alias("tenant")).agg(
        *[total(name).alias(name) for name in ("bytes_in", "bytes_out")]
    )
    timed = sums.orderBy("hour", "tenant").withColumn("hour", F.unix_seconds("hour"))
    return [
        Hour(
            _utc(row.hour),
            OTHERS if row.tenant is None else _label(row.tenant, several),
            row.bytes_in,
            row.bytes_out,
        )
        for row in timed.collect()
    ]


def _period(job: Job) -> tuple[datetime, datetime] | None:
    """The period of the tables; None if an end is unknown, for want of events."""
    period = job.period()
    if period.start_ms is None or period.end_ms is None:
        return None
    return _utc(period.start_ms / 1000), _utc(period.end_ms / 1000)


def _utc(seconds: float) -> datetime:
    """The time without a zone, in UTC. Spark itself converts times to the zone of this machine."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _bound(table: DataFrame, *, several: bool) -> list[Bound]:
    sums = table.groupBy(*_TENANT, "quota").agg(*[total(name).alias(name) for name in BOUND])
    worst = sums.orderBy(F.desc("throttle_ms"), F.desc("rejected_bytes"), *_TENANT, "quota")
    return [
        Bound(_label(row, several), row.quota or "unknown", *[row[name] for name in BOUND])
        for row in worst.collect()
    ]


def _throttle_hours(table: DataFrame) -> dict[str, dict[datetime, float]]:
    found: dict[str, dict[datetime, float]] = defaultdict(lambda: defaultdict(float))
    rows = table.groupBy("quota", "hour").agg(total("throttle_ms").alias("throttle_ms"))
    timed = rows.where(F.col("throttle_ms") > 0).orderBy("quota", "hour")
    for row in timed.withColumn("hour", F.unix_seconds("hour")).collect():
        found[row.quota or "unknown"][_utc(row.hour)] += row.throttle_ms
    return found


def _charges(table: DataFrame, *, several: bool) -> list[Charge]:
    rows = table.orderBy(F.desc("amount"), *_TENANT).collect()
    return [Charge(row.cluster, _label(row, several), row.amount, row.partition_hours) for row in rows]


def _headroom(table: DataFrame, *, several: bool) -> list[Headroom]:
    rows = table.orderBy(F.desc("used"), *_TENANT, "quota").collect()
    return [
        Headroom(
            bucket_label(row.user, row.client_id, row.cluster if several else None),
            row.quota,
            row.limit,
            row.p99_rate,
            row.max_rate,
        )
        for row in rows
    ]
