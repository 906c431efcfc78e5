"""Invoices: lines by price and tier, which add up to the tenant's amount."""

from collections.abc import Callable
from decimal import Decimal
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.inputs.prices import Prices, Tier
from pipeline.schema import INVOICES
from pipeline.transforms.chargeback import chargeback
from pipeline.transforms.invoices import invoices
from tests.support.messages.usage_events import make_event

Frame = Callable[..., DataFrame]
GIB = 1 << 30


@pytest.fixture
def nobody(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [], "cluster string, user string, client_id string, name string, cost_center string"
    )


def test_a_line_for_each_price_and_each_tier_that_was_reached(frame: Frame, nobody: DataFrame) -> None:
    tiers = [Tier(Decimal("0.10"), Decimal(10)), Tier(Decimal("0.08"), Decimal(100)), Tier(Decimal("0.01"))]
    prices = Prices(currency="EUR", per_gib_in=tiers, per_million_requests=Decimal("0.5"))
    events = frame(make_event(bytes_in=30 * GIB, bytes_out=GIB, requests=2_000_000))
    table = invoices(chargeback(events, prices), nobody, prices)
    assert table.columns == INVOICES.names
    assert [(row.item, row.quantity, row.price, row.amount) for row in table.orderBy("line").collect()] == [
        ("per_gib_in", 10, Decimal("0.10"), Decimal("1.00")),
        ("per_gib_in", 20, Decimal("0.08"), Decimal("1.60")),
        ("per_gib_out", 1, 0, 0),
        ("per_million_requests", 2, Decimal("0.5"), Decimal("1.00")),
        ("per_partition_hour", 1, 0, 0),
    ]


def test_names_and_cost_centers_are_of_one_tenant(spark: SparkSession, frame: Frame) -> None:
    prices = Prices(currency="EUR")
    owners = spark.createDataFrame(
        [("local", "alice", "a", None, "4711")],
        "cluster string, user string, client_id string, name string, cost_center string",
    )
    bill = chargeback(frame(make_event(client_id="a"), make_event(client_id="b")), prices)
    found = {
        row.client_id: (row["name"], row.cost_center) for row in invoices(bill, owners, prices).collect()
    }
    assert found == {"a": (None, "4711"), "b": (None, None)}


@pytest.mark.parametrize("seed", range(2))
def test_the_lines_add_up_to_each_amount_and_to_the_bill(frame: Frame, nobody: DataFrame, seed: int) -> None:
    random = Random(seed)
    prices = Prices(
        currency="EUR",
        per_gib_in=[Tier(Decimal("0.333333"), Decimal("0.1")), Tier(Decimal("0.111111"))],
        per_gib_out=Decimal("0.077777"),
        per_million_requests=Decimal("7.7"),
        per_partition_hour=Decimal("0.0037"),
    )
    events = frame(
        *[
            make_event(
                cluster=f"c{random.randrange(2)}",
                user=f"u{random.randrange(40)}",
                partition=random.randrange(5),
                at=10_000 * step,
                bytes_in=random.randrange(10**9),
                bytes_out=random.randrange(10**9),
                requests=random.randrange(10**4),
            )
            for step in range(300)
        ]
    )
    bill = chargeback(events, prices)
    lines = invoices(bill, nobody, prices)
    key = ("cluster", "user", "client_id")
    sums = lines.groupBy(*key).agg(F.sum("amount").alias("lines"))
    rows = bill.join(sums, [*key]).collect()
    assert len(rows) == bill.count() > 40
    assert [row for row in rows if row.lines != row.amount] == []
    for row in lines.collect():
        assert abs(row.amount - row.quantity * row.price) < Decimal("0.01")
        assert row.amount >= 0
