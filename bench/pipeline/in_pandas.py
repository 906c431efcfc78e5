"""The same work with pandas, timed: `python -m bench.pipeline.in_pandas JOB EVENTS OUT ...`.

Prints a line of JSON.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.schema import COUNTS, IDENTITY
from pipeline.transforms.buckets import APIS, DIRECTIONS
from pipeline.transforms.throttle import BOUND

PLACE = ["cluster", "broker", "user", "client_id", "topic", "partition"]
JOBS = ("ingest", "usage", "throttle", "chargeback", "recommend")


def main() -> None:
    """Read, remove duplicates, aggregate, write."""
    job, source, out = sys.argv[1:4]
    began = time.monotonic()
    events = pd.read_parquet(source).drop_duplicates(list(IDENTITY))
    events["hour"] = events["interval_start_ms"] // 3_600_000
    Path(out).mkdir(parents=True, exist_ok=True)
    if job == "ingest":
        events["date"] = pd.to_datetime(events["interval_start_ms"], unit="ms").dt.date
        events.to_parquet(f"{out}/{job}.parquet", partition_cols=["date"])
    else:
        table = {"usage": usage, "throttle": throttle, "chargeback": chargeback, "recommend": recommend}[job]
        table(events).to_parquet(f"{out}/{job}.parquet")
    seconds = time.monotonic() - began
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "megabytes": megabytes}))


def usage(events: Any) -> Any:
    """Compute sums, and the maximum and percentiles of the rates."""
    keys = [*PLACE, "hour", "interval_start_ms"]
    intervals = events.groupby(keys, dropna=False, as_index=False).agg(
        {**dict.fromkeys(COUNTS, "sum"), "interval_ms": "max"}
    )
    for way in ("bytes_in", "bytes_out"):
        intervals[f"{way}_rate"] = intervals[way] * 1000 / intervals["interval_ms"]
    hours = intervals.groupby(["hour", *PLACE], dropna=False)
    table = hours[list(COUNTS)].sum()
    for way in ("bytes_in", "bytes_out"):
        rates = hours[f"{way}_rate"]
        table[f"max_{way}_rate"] = rates.max()
        table[f"p95_{way}_rate"] = rates.quantile(0.95)
        table[f"p99_{way}_rate"] = rates.quantile(0.99)
        total = table.groupby(["hour", "cluster"])[way].transform("sum")
        table[f"share_{way}"] = table[way] / total
    return table.reset_index()


def throttle(events: Any) -> Any:
    """Sum throttling by hour and quota."""
    bound = events[(events[list(BOUND)] > 0).any(axis=1)]
    return bound.groupby(["hour", "user", "client_id", "quota"], dropna=False, as_index=False)[
        list(BOUND)
    ].sum()


def chargeback(events: Any) -> Any:
    """Sum what each tenant used; applying the prices costs next to nothing."""
    keys = ["user", "client_id", "cluster", "topic", "partition", "hour"]
    hours = events.groupby(keys, dropna=False, as_index=False)[["bytes_in", "bytes_out", "requests"]].sum()
    table = hours.groupby(["user", "client_id"])[["bytes_in", "bytes_out", "requests"]].sum()
    table["partition_hours"] = hours.dropna().groupby(["user", "client_id"]).size()
    return table.reset_index()


def recommend(events: Any) -> Any:
    """Compute the p99 rate of each tenant, broker and direction; the remaining steps have few rows."""
    found = []
    for quota, apis in APIS.items():
        charged = events[events["api"].isin(apis)].rename(columns={DIRECTIONS[quota]: "bytes"})
        found.append(charged.loc[charged["bytes"] > 0].assign(quota=quota))
    keys = ["cluster", "broker", "user", "client_id", "quota"]
    intervals = (
        pd.concat(found)
        .groupby([*keys, "interval_start_ms"], as_index=False)
        .agg({"bytes": "sum", "interval_ms": "max"})
    )
    intervals["p99_rate"] = intervals["bytes"] * 1000 / intervals["interval_ms"]
    return intervals.groupby(keys)["p99_rate"].quantile(0.99).reset_index()


if __name__ == "__main__":
    main()
