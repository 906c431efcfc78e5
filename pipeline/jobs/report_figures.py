"""Collects the figures of the report from its tables."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import reduce
from itertools import groupby
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from pipeline.inputs.tenants import Directory
from pipeline.jobs.comparison import utc
from pipeline.report.figures import (
    OTHERS,
    Before,
    Bound,
    Charge,
    Headroom,
    Hour,
    Invoice,
    Key,
    Line,
    Topic,
    Use,
)
from pipeline.report.labels import bucket_label, tenant_label
from pipeline.transforms.throttle import BOUND
from pipeline.transforms.totals import total

TENANT: Final = ("cluster", "user", "client_id")
_UNKNOWN: Final = "unknown"


def label(tenant: Key, *, several: bool) -> str:
    """The label of a tenant; with its cluster if there are several."""
    cluster, user, client_id = tenant
    return tenant_label(user, client_id, cluster if several else None)


def tenant_uses(table: DataFrame) -> dict[Key, Use]:
    """The use of each tenant in `schema.USAGE`, largest first."""
    sums = table.groupBy(*TENANT).agg(
        *[total(name).alias(name) for name in ("bytes_in", "bytes_out", "requests")]
    )
    largest = sums.orderBy(F.desc(F.col("bytes_in").cast("double") + F.col("bytes_out")), *TENANT)
    return {_key(row): Use(row.bytes_in, row.bytes_out, row.requests) for row in largest.collect()}


def hours(table: DataFrame, named: Sequence[Key], *, several: bool) -> list[Hour]:
    """The hourly sums of the `named` tenants, and of all others together."""
    is_named = F.lit(False)
    for tenant in named:
        same = [F.col(name) == part for name, part in zip(TENANT, tenant, strict=True)]
        is_named = is_named | reduce(Column.__and__, same)
    sums = table.groupBy("hour", F.when(is_named, F.struct(*TENANT)).alias("tenant")).agg(
        *[total(name).alias(name) for name in ("bytes_in", "bytes_out")]
    )
    timed = sums.orderBy("hour", "tenant").withColumn("hour", F.unix_seconds("hour"))
    return [
        Hour(
            utc(row.hour),
            OTHERS if row.tenant is None else label(_key(row.tenant), several=several),
            row.bytes_in,
            row.bytes_out,
        )
        for row in timed.collect()
    ]


def topics(table: DataFrame, most: int) -> tuple[list[Topic], int]:
    """Return the `most` largest topics of `schema.USAGE`, and the number of all topics."""
    sums = table.groupBy("topic").agg(
        *[total(name).alias(name) for name in ("bytes_in", "bytes_out")],
        F.countDistinct(*TENANT).alias("tenants"),
        F.countDistinct("cluster", "partition").alias("partitions"),
    )
    largest = sums.orderBy(F.desc(F.col("bytes_in").cast("double") + F.col("bytes_out")), "topic")
    found = [
        Topic(row.topic or "", row.bytes_in, row.bytes_out, row.tenants, row.partitions)
        for row in largest.take(most)
    ]
    return found, len(found) if len(found) < most else sums.count()


def bound(table: DataFrame, *, several: bool) -> list[Bound]:
    """What quotas did to tenants, in `schema.THROTTLE`; the longest throttle time first."""
    sums = table.groupBy(*TENANT, "quota").agg(*[total(name).alias(name) for name in BOUND])
    worst = sums.orderBy(F.desc("throttle_ms"), F.desc("rejected_bytes"), *TENANT, "quota")
    return [
        Bound(label(_key(row), several=several), row.quota or _UNKNOWN, *[row[name] for name in BOUND])
        for row in worst.collect()
    ]


def quota_hours(table: DataFrame, *counts: str) -> list[dict[str, dict[datetime, float]]]:
    """The sum of each of these columns of `schema.THROTTLE` by quota and hour, where it is not 0."""
    found: list[dict[str, dict[datetime, float]]] = [defaultdict(lambda: defaultdict(float)) for _ in counts]
    rows = table.groupBy("quota", "hour").agg(*[total(count).alias(count) for count in counts])
    timed = rows.orderBy("quota", "hour").withColumn("hour", F.unix_seconds("hour"))
    for row in timed.collect():
        for sums, count in zip(found, counts, strict=True):
            if row[count] > 0:
                sums[row.quota or _UNKNOWN][utc(row.hour)] += row[count]
    return found


def headrooms(table: DataFrame, *, several: bool) -> list[Headroom]:
    """The rows of `schema.HEADROOM`, the fullest first."""
    rows = table.orderBy(F.desc("used"), *TENANT, "quota").collect()
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


def invoices(
    uses: Mapping[Key, Use], lines: DataFrame, directory: Directory, before: Before | None, *, several: bool
) -> Iterator[Invoice]:
    """Yield the invoice of each tenant, in the order of their keys; `lines` is `schema.INVOICES`."""
    rows = lines.orderBy(*TENANT, "line").toLocalIterator()
    for tenant, found in groupby(rows, _key):
        entry = directory.find(*tenant)
        yield Invoice(
            label(tenant, several=several),
            *tenant,
            lines=[Line(row.item, row.quantity, row.unit, row.price, row.amount) for row in found],
            use=uses[tenant],
            before=None if before is None else before.uses.get(tenant, _nothing(uses[tenant])),
            name=entry.name,
            cost_center=entry.cost_center,
        )


def largest(uses: Mapping[Key, Use], most: int) -> set[Key]:
    """Return the `most` tenants that pay the most."""
    return set(sorted(uses, key=lambda tenant: (-(uses[tenant].amount or 0), tenant))[:most])


def in_order(invoices: Iterable[Invoice]) -> list[Invoice]:
    """The invoices in the order of cost centers and names. Those without a cost center come last."""
    return sorted(invoices, key=lambda each: (not each.cost_center, each.cost_center, each.tenant))


def charges(
    uses: Mapping[Key, Use], invoices: Sequence[Invoice], directory: Directory, *, several: bool
) -> list[Charge]:
    """What each tenant pays, the largest amount first."""
    numbers = {(each.cluster, each.user, each.client_id): place for place, each in enumerate(invoices, 1)}
    return [
        Charge(
            tenant[0],
            label(tenant, several=several),
            use.amount or Decimal(0),
            use.partition_hours or 0,
            directory.find(*tenant).cost_center,
            numbers.get(tenant, 0),
        )
        for tenant, use in sorted(uses.items(), key=lambda found: (-(found[1].amount or 0), found[0]))
    ]


def _nothing(use: Use) -> Use:
    """The use of a tenant that had none."""
    return Use(partition_hours=0, amount=None if use.amount is None else use.amount * 0)


def _key(row: Row) -> Key:
    return row.cluster, row.user, row.client_id
