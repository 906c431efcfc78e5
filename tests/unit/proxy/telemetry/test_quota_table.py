"""The rows of /api/quotas, and their history."""

import asyncio

import pytest

from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry import quota_table
from proxy.telemetry.quota_rows import Row
from proxy.telemetry.quota_table import QuotaTable


def test_the_rows_of_buckets_come_before_further_rows() -> None:
    states = [(1, BucketState(quota="q", user=name, limit=10.0, rate=5.0)) for name in "ab"]
    further: Row = {"entity": {"user": "c"}}

    async def more() -> list[Row]:
        return [further]

    async def users(table: QuotaTable) -> list[str]:
        return [row["entity"]["user"] async for row in table.rows()]

    assert asyncio.run(users(QuotaTable(lambda: states, further=more))) == ["a", "b", "c"]
    assert asyncio.run(users(QuotaTable())) == []


async def test_the_history_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_table, "INTERVAL_SECONDS", 0.0)
    asked = 0
    sampled = asyncio.Event()

    def buckets() -> list[tuple[int, BucketState]]:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise RuntimeError("buckets")
        if asked == 3:
            sampled.set()
        return [(1, BucketState(quota="q", user="alice", limit=10.0, rate=5.0))]

    table = QuotaTable(buckets)
    running = asyncio.ensure_future(table.run())
    await sampled.wait()
    running.cancel()
    [series] = table.history.shown()["series"]
    assert series["used"][1:2] == [0.5]
