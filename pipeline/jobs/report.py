"""The job that writes the report and its tables."""

from collections import defaultdict
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from pipeline.filesystem import FilePath
from pipeline.jobs.job import Job
from pipeline.prices import Prices
from pipeline.quota_file import QuotaSet
from pipeline.report.charts import COLORS
from pipeline.report.page import OTHERS, Bound, Charge, Figures, Headroom, Hour, render, tenant_name
from pipeline.tables import write_table
from pipeline.transforms.chargeback import chargeback
from pipeline.transforms.headroom import headroom
from pipeline.transforms.throttle import BOUND, throttle
from pipeline.transforms.usage import usage


def write_report(job: Job, prices: Prices | None, quotas: QuotaSet | None) -> None:
    """Write `report.html`, and its tables as Parquet and CSV."""
    events = job.kept_events()
    hours = _keep(job, "usage", usage(events))
    waits = _keep(job, "throttle", throttle(events))
    charges = None if prices is None else _keep(job, "chargeback", chargeback(events, prices))
    limits = None if quotas is None else _keep(job, "headroom", headroom(events, quotas))
    quality = job.report_quality()
    tenants = _tenants(hours)
    figures = Figures(
        clusters=sorted(row.cluster for row in hours.select("cluster").distinct().collect()),
        hours=_hours(hours, list(tenants)[: len(COLORS)]),
        tenants={tenant_name(*tenant): sums for tenant, sums in tenants.items()},
        bound=_bound(waits),
        throttle_hours=_throttle_hours(waits),
        charges=[] if charges is None else _charges(charges),
        currency="" if prices is None else prices.currency,
        headroom=[] if limits is None else _headroom(limits),
        bad_events=quality.bad,
    )
    file = job.write_text("report.html", render(figures))
    job.say(f"{file}: open it in a browser, or print it")


def _keep(job: Job, name: str, table: DataFrame) -> DataFrame:
    """Write the table as Parquet and CSV, and read it back, so that it is not computed again."""
    folder = write_table(table, job.options.out, name)
    written = job.spark.read.parquet(folder)
    file = FilePath(job.spark, f"{folder}.csv")
    parts = file.beside("parts")
    written.coalesce(1).write.mode("overwrite").option("header", "true").csv(str(parts))
    parts.only_file(".csv").replace(file)
    parts.delete()
    return written


def _tenant(row: Row) -> str:
    return tenant_name(row.user, row.client_id)


def _tenants(table: DataFrame) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Bytes in, bytes out and requests by user and client id, largest first."""
    sums = table.groupBy("user", "client_id").agg(
        *[F.sum(name).alias(name) for name in ("bytes_in", "bytes_out", "requests")]
    )
    largest = sums.orderBy(F.desc(F.col("bytes_in") + F.col("bytes_out")), "user", "client_id")
    return {
        (row.user, row.client_id): (row.bytes_in, row.bytes_out, row.requests) for row in largest.collect()
    }


def _hours(table: DataFrame, named: list[tuple[str, str]]) -> list[Hour]:
    """The hourly sums of the `named` tenants, and of all others together."""
    tenant = F.struct("user", "client_id")
    is_named = F.lit(False)
    for user, client_id in named:
        is_named = is_named | ((F.col("user") == user) & (F.col("client_id") == client_id))
    sums = table.groupBy("hour", F.when(is_named, tenant).alias("tenant")).agg(
        *[F.sum(name).alias(name) for name in ("bytes_in", "bytes_out")]
    )
    timed = sums.orderBy("hour", "tenant").withColumn("hour", F.unix_seconds("hour"))
    return [
        Hour(
            _utc(row.hour), OTHERS if row.tenant is None else _tenant(row.tenant), row.bytes_in, row.bytes_out
        )
        for row in timed.collect()
    ]


def _utc(seconds: int) -> datetime:
    """The time without a zone, in UTC. Spark itself converts times to the zone of this machine."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _bound(table: DataFrame) -> list[Bound]:
    sums = table.groupBy("user", "client_id", "quota").agg(*[F.sum(name).alias(name) for name in BOUND])
    worst = sums.orderBy(F.desc("throttle_ms"), F.desc("rejected_bytes"), "user", "client_id", "quota")
    return [
        Bound(_tenant(row), row.quota or "unknown", *[row[name] for name in BOUND]) for row in worst.collect()
    ]


def _throttle_hours(table: DataFrame) -> dict[str, dict[datetime, float]]:
    found: dict[str, dict[datetime, float]] = defaultdict(dict)
    rows = table.groupBy("quota", "hour").agg(F.sum("throttle_ms").alias("throttle_ms"))
    timed = rows.where(F.col("throttle_ms") > 0).orderBy("quota", "hour")
    for row in timed.withColumn("hour", F.unix_seconds("hour")).collect():
        found[row.quota or "unknown"][_utc(row.hour)] = row.throttle_ms
    return found


def _charges(table: DataFrame) -> list[Charge]:
    rows = table.orderBy(F.desc("amount"), "user", "client_id").collect()
    return [Charge(_tenant(row), row.amount, row.partition_hours) for row in rows]


def _headroom(table: DataFrame) -> list[Headroom]:
    rows = table.orderBy(F.desc("used"), "user", "client_id", "quota").collect()
    return [Headroom(_tenant(row), row.quota, row.limit, row.p99_rate, row.max_rate) for row in rows]
