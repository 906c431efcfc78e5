"""The same tables with Polars: `python -m bench.pipeline.in_polars JOB EVENTS OUT PRICES SCRATCH`.

Prints a line of JSON with the process's cost.
"""

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import polars as pl
import yaml

from bench.pipeline.cost import own_cost
from bench.pipeline.in_duckdb import IDENTITY, JOBS

_PLACE: Final = ("cluster", "broker", "user", "client_id", "topic", "partition")
_BOUND: Final = ("throttled_requests", "throttle_ms", "rejected_requests", "rejected_bytes")
_COUNTS: Final = ("requests", "bytes_in", "bytes_out", *_BOUND)
_TENANT: Final = ("cluster", "user", "client_id")
_CENT: Final = 10**10
"""In units of 10^-12 of the currency."""
_SCHEMA: Final = {
    "v": pl.Int32,
    **dict.fromkeys(IDENTITY.split(", "), pl.String),
    **dict.fromkeys(_COUNTS, pl.Int64),
    "interval_start_ms": pl.Int64,
    "interval_ms": pl.Int64,
    "broker": pl.Int32,
    "partition": pl.Int32,
    "quota": pl.String,
}


def table(job: str, source: str, prices: dict[str, Any]) -> Any:
    """The job's table, without the period, as a lazy frame."""
    assert job in JOBS
    if next(Path(source).rglob("*.parquet"), None) is not None:
        events = pl.scan_parquet(f"{source}/*.parquet")
    else:
        events = pl.scan_ndjson(f"{source}/*.json", schema=_SCHEMA)
    if job == "throttle":
        events = events.filter(pl.any_horizontal(pl.col(*_BOUND) > 0))
    once = events.unique(IDENTITY.split(", ")).with_columns(
        hour=pl.from_epoch(pl.col("interval_start_ms") // 3_600_000 * 3600, time_unit="s").cast(
            pl.Datetime("us")
        )
    )
    if job == "usage":
        return _usage(once)
    if job == "throttle":
        return once.group_by("hour", *_TENANT, "quota").agg(pl.col(*_BOUND).sum())
    return _chargeback(once, prices)


def rows(job: str, source: str, prices: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the job's table."""
    found: list[dict[str, Any]] = table(job, source, prices).collect().to_dicts()
    return found


def _usage(events: Any) -> Any:
    intervals = events.group_by("hour", *_PLACE, "interval_start_ms").agg(
        pl.col(*_COUNTS).sum(), pl.col("interval_ms").max()
    )
    ways = ("bytes_in", "bytes_out")
    rates = intervals.with_columns(
        (pl.col(way) * 1000.0 / pl.col("interval_ms")).alias(f"{way}_rate") for way in ways
    )
    hours = rates.group_by("hour", *_PLACE).agg(
        pl.col(*_COUNTS).sum(),
        *[pl.col(f"{way}_rate").max().alias(f"max_{way}_rate") for way in ways],
        *[
            pl.col(f"{way}_rate").quantile(percent / 100, "linear").alias(f"p{percent}_{way}_rate")
            for percent in (95, 99)
            for way in ways
        ],
    )
    return hours.with_columns(
        (pl.col(way) / pl.col(way).sum().over("hour", "cluster"))
        .fill_nan(0.0)
        .alias(way.replace("bytes", "share"))
        for way in ways
    )


def _chargeback(events: Any, prices: dict[str, Any]) -> Any:
    hours = events.group_by(*_TENANT, "topic", "partition", "hour").agg(
        pl.col("bytes_in", "bytes_out", "requests").sum()
    )
    tenants = hours.group_by(*_TENANT).agg(
        pl.col("bytes_in", "bytes_out", "requests").sum(),
        pl.col("partition").count().alias("partition_hours"),
    )

    def cost(name: str, price: str) -> Any:
        return pl.col(name).cast(pl.Int128) * round(Decimal(str(prices[price])) * 1_000_000)

    exact = (
        (cost("bytes_in", "per_gib_in") + cost("bytes_out", "per_gib_out")) * 1_000_000 // (1 << 30)
        + cost("requests", "per_million_requests")
        + cost("partition_hours", "per_partition_hour") * 1_000_000
    )
    cut = tenants.with_columns(exact=exact).with_columns(
        cents=pl.col("exact") // _CENT, remainder=pl.col("exact") % _CENT
    )
    lacking = (pl.col("exact").sum().over("cluster") + _CENT // 2) // _CENT - pl.col("cents").sum().over(
        "cluster"
    )
    ordered = cut.with_columns(lacking=lacking).sort(
        ["cluster", "remainder", "user", "client_id"], descending=[False, True, False, False]
    )
    place = pl.int_range(1, pl.len() + 1).over("cluster")
    cents = pl.col("cents") + (place <= pl.col("lacking")).cast(pl.Int128)
    amount = (cents.cast(pl.Decimal(30, 2)) * Decimal("0.01")).cast(pl.Decimal(20, 2))
    return ordered.with_columns(currency=pl.lit(prices["currency"]), amount=amount).select(
        *_TENANT, "bytes_in", "bytes_out", "requests", "partition_hours", "currency", "amount"
    )


def main() -> None:
    """Compute the table, write it as Parquet, print what it cost."""
    job, source, out, prices, _ = sys.argv[1:]
    Path(out).mkdir(parents=True, exist_ok=True)
    found = table(job, source, yaml.safe_load(Path(prices).read_text(encoding="utf-8")))
    found.sink_parquet(f"{out}/{job}.parquet")
    print(own_cost())


if __name__ == "__main__":
    main()
