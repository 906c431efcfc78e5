"""The figures of the report: UTC hours, topics, and what invoices have."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.inputs.tenants import Directory, Tenant
from pipeline.jobs.report_figures import charges, hours, in_order, invoices, largest, quota_hours, topics
from pipeline.report.figures import Before, Topic, Use
from pipeline.transforms.usage import usage
from tests.support.messages.usage_events import make_event

NOON: Final = datetime(2026, 1, 1, 12)
Frame = Callable[..., DataFrame]


@pytest.fixture(params=["America/New_York", "Europe/Berlin"])
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process in another time zone than UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_hours_are_utc_on_every_machine(spark: SparkSession) -> None:
    """Also the hour that a clock shows twice at the end of summer time."""
    times = [datetime(2025, month, day, hour) for month, day in ((10, 26), (11, 2)) for hour in range(9)]
    texts = [(each.isoformat(), "e", "u", "c", "q", 1, 1) for each in times]
    table = spark.createDataFrame(
        texts,
        "hour string, cluster string, user string, client_id string, quota string, "
        "bytes_in int, bytes_out int",
    ).withColumn("hour", F.col("hour").cast("timestamp"))
    named = [("e", "u", "c")]
    assert [found.hour for found in hours(table, named, several=False)] == times
    waits = table.withColumnRenamed("bytes_in", "throttle_ms")
    assert list(quota_hours(waits, "throttle_ms")[0]["q"]) == times


def test_quotas_without_a_name_add_up(spark: SparkSession) -> None:
    rows = [(NOON.isoformat(), quota, 5) for quota in (None, "", "q")]
    table = spark.createDataFrame(rows, "hour string, quota string, throttle_ms int")
    (found,) = quota_hours(table.withColumn("hour", F.col("hour").cast("timestamp")), "throttle_ms")
    assert found == {"unknown": {NOON: 10}, "q": {NOON: 5}}


def test_topics_are_of_all_tenants_and_partitions(frame: Frame) -> None:
    events = [
        make_event(topic="small", bytes_in=5, bytes_out=0),
        make_event(topic="large", bytes_in=50, bytes_out=5),
        make_event(topic="large", partition=1, user="bob", bytes_in=50, bytes_out=0, api="Fetch"),
        make_event(topic=None, partition=None, bytes_in=7, bytes_out=0),
    ]
    found, count = topics(usage(frame(*events)), 2)
    assert found == [Topic("large", 100, 5, 2, 2), Topic("", 7, 0, 1, 0)]
    assert count == 3


def test_the_largest_invoices_are_in_the_order_of_cost_centers(spark: SparkSession) -> None:
    """Those without one come last."""
    uses = {
        ("local", name, "c"): Use(1, 1, 1, 1, Decimal(amount))
        for name, amount in (("a", 5), ("b", 7), ("c", 1), ("d", 3))
    }
    rows = [
        (*tenant, 1, "per_gib_in", Decimal(1), "GiB", Decimal(1), use.amount) for tenant, use in uses.items()
    ]
    lines = spark.createDataFrame(
        rows,
        "cluster string, user string, client_id string, line int, item string, quantity decimal(31,18), "
        "unit string, price decimal(14,6), amount decimal(20,2)",
    )
    directory = Directory([Tenant(cost_center="2", user="b"), Tenant(cost_center="1", user="d")])
    before = Before((NOON, NOON), {("local", "a", "c"): Use(2)})
    shown = largest(uses, 3)
    made = in_order(
        each
        for each in invoices(uses, lines, directory, before, several=False)
        if (each.cluster, each.user, each.client_id) in shown
    )
    assert [(each.tenant, each.cost_center) for each in made] == [
        ("d / c", "1"),
        ("b / c", "2"),
        ("a / c", ""),
    ]
    assert [each.lines[0].amount for each in made] == [3, 7, 5]
    assert made[2].before == Use(2)
    assert made[0].before == Use(0, 0, 0, 0, Decimal(0))
    owed = charges(uses, made, directory, several=False)
    assert [(each.tenant, each.amount, each.invoice) for each in owed] == [
        ("b / c", Decimal(7), 2),
        ("a / c", Decimal(5), 3),
        ("d / c", 3, 1),
        ("c / c", 1, 0),
    ]
