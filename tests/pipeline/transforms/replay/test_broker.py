"""Replay of the broker's quota: which bytes it would have rejected, and whose."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame

from pipeline.inputs.quota_file import Quotas, QuotaSet, read_quotas
from pipeline.transforms.replay.broker import simulate_broker
from pipeline.transforms.replay.replay import replay
from tests.support.messages.usage_events import make_event

MB = 1_000_000
TOTAL = "total.bytes.in.per.sec.threshold"
SHARE = "bytes.in.per.sec.threshold"


def quotas(total: int, **topics: int) -> QuotaSet:
    return QuotaSet(
        Quotas(),
        topics={name: {SHARE: str(value)} for name, value in topics.items()},
        brokers={"<default>": {TOTAL: str(total)}},
    )


def rows(events: list[dict[str, Any]]) -> Any:
    return pd.DataFrame([{**event, "bytes": event["bytes_in"]} for event in events])


def minutes(count: int, **rates: float) -> list[dict[str, Any]]:
    """Events of this many minutes; users have the names of the topics that they produce to, in bytes/s."""
    return [
        make_event(at=10_000 * step, user=topic, topic=topic, bytes_in=round(10 * rate))
        for step in range(6 * count)
        for topic, rate in rates.items()
    ]


def test_who_is_over_the_share_is_rejected_and_nobody_else() -> None:
    found = simulate_broker(rows(minutes(30, greedy=3 * MB, small=0.2 * MB)), quotas(MB))
    ((user, client_id, quota, size),) = found
    assert (user, client_id, quota) == ("greedy", "billing", SHARE)
    # What is let through comes to the broker's threshold, but for the first minute's slow average.
    assert size == pytest.approx((3.2 - 1.0) * MB * 1800, rel=0.1)


def test_a_share_of_its_own() -> None:
    events = minutes(30, greedy=3 * MB, small=0.2 * MB)
    assert simulate_broker(rows(events), quotas(MB, small=100_000, greedy=900_000))[0][0] == "greedy"
    assert {found[0] for found in simulate_broker(rows(events), quotas(MB, small=100_000))} == {
        "greedy",
        "small",
    }


def test_within_the_total_nobody_is_rejected() -> None:
    assert simulate_broker(rows(minutes(10, greedy=3 * MB, small=0.2 * MB)), quotas(4 * MB)) == []


def test_before_and_after(frame: Callable[..., DataFrame]) -> None:
    events = minutes(5, greedy=3 * MB, small=0.2 * MB)
    rejected = make_event(
        user="small", topic="small", at=10, rejected_bytes=500, rejected_requests=1, quota=SHARE
    )
    table = replay(frame(*events, rejected), quotas(MB))
    found = {row.user: row for row in table.collect()}
    assert (found["small"].before_rejected_bytes, found["small"].after_rejected_bytes) == (500, 0)
    assert found["greedy"].before_rejected_bytes == 0
    assert found["greedy"].after_rejected_bytes > 100 * MB


def test_thresholds_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(
        "quotas: {brokers: {1: {total.bytes.in.per.sec.threshold: 5}},"
        " topics: {a: {bytes.in.per.sec.threshold: 3, producer.byte.rate: 9}}}"
    )
    found = read_quotas(file)
    assert (found.brokers, found.topics) == (
        {"1": {TOTAL: "5"}},
        {"a": {SHARE: "3", "producer.byte.rate": "9"}},
    )
