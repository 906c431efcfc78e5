"""The same work with pandas: sums and rates of a few events."""

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from bench.pipeline.in_pandas import JOBS, chargeback, main, recommend, throttle, usage
from tests.support.messages.usage_events import HOUR_MS, START_MS, make_event


def table(*events: dict[str, object]) -> pd.DataFrame:
    found = pd.DataFrame(events)
    found["hour"] = found["interval_start_ms"] // HOUR_MS
    return found


def test_usage_is_by_tenant_partition_and_hour() -> None:
    found = usage(
        table(
            make_event(bytes_in=1000),
            make_event(bytes_in=2000, api="Fetch"),
            make_event(at=10_000, bytes_in=500),
            make_event(at=HOUR_MS, bytes_in=7),
            make_event(user="bob", bytes_in=500, topic=None),
        )
    )
    rows = {(row.user, row.hour - START_MS // HOUR_MS): row for row in found.itertuples()}
    alice = rows["alice", 0]
    assert (alice.bytes_in, alice.max_bytes_in_rate, alice.share_bytes_in) == (3500, 300.0, 0.875)
    assert rows["alice", 1].share_bytes_in == 1.0
    assert rows["bob", 0].share_bytes_in == 0.125


def test_throttling_is_by_quota() -> None:
    bound = {"throttled_requests": 1, "throttle_ms": 70}
    found = throttle(table(make_event(quota="q", **bound), make_event(**bound), make_event()))
    assert sorted(found["throttle_ms"]) == [70, 70]


def test_partition_hours_are_of_events_with_a_partition() -> None:
    events = [
        make_event(),
        make_event(at=10_000),
        make_event(partition=1),
        make_event(topic=None, partition=None),
    ]
    (row,) = chargeback(table(*events)).itertuples()
    assert (row.bytes_in, row.partition_hours) == (4000, 2)


def test_a_rate_is_of_the_apis_that_the_quota_charges() -> None:
    found = recommend(
        table(make_event(bytes_in=5000), make_event(api="Fetch", bytes_out=900), make_event(api="Metadata"))
    )
    assert dict(zip(found["quota"], found["p99_rate"], strict=True)) == {
        "producer_byte_rate": 500.0,
        "consumer_byte_rate": 90.0,
    }


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_timed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, job: str
) -> None:
    """Duplicates do not count."""
    source, out = tmp_path / "events.parquet", tmp_path / "out"
    events = [make_event(api=api) for api in ("Produce", "Produce", "Fetch")]
    pd.DataFrame([{**event, "quota": "q"} for event in events]).to_parquet(source)
    monkeypatch.setattr(sys, "argv", ["in_pandas", job, str(source), str(out)])
    main()
    assert json.loads(capsys.readouterr().out).keys() == {"seconds", "megabytes"}
    if job == "ingest":
        assert len(pd.read_parquet(out / "ingest.parquet")) == 2
    assert (out / f"{job}.parquet").exists()
