"""Chargeback: exact prices, tiers, and cents that add up."""

from collections.abc import Callable
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from click.testing import Result
from pyspark.sql import DataFrame

from pipeline.inputs.prices import Prices, Tier
from pipeline.schema import CHARGEBACK
from pipeline.transforms.chargeback import chargeback
from tests.support.messages.usage_events import HOUR_MS, make_event, write_lines
from tests.support.tables import read_rows

Frame = Callable[..., DataFrame]
GIB = 1 << 30
PRICES = Prices(
    currency="EUR",
    per_gib_in=Decimal("0.10"),
    per_gib_out=Decimal("0.05"),
    per_million_requests=Decimal("0.20"),
    per_partition_hour=Decimal("0.001"),
)


def amounts(table: DataFrame) -> dict[str, Decimal]:
    return {row.user: row.amount for row in table.collect()}


def test_what_a_tenant_pays(frame: Frame) -> None:
    table = chargeback(
        frame(
            make_event(bytes_in=100 * GIB, bytes_out=0, requests=1_000_000),
            make_event(bytes_in=0, bytes_out=40 * GIB, requests=4_000_000, api="Fetch"),
        ),
        PRICES,
    )
    assert table.columns == CHARGEBACK.names
    (row,) = table.collect()
    assert (row.bytes_in, row.bytes_out, row.requests) == (100 * GIB, 40 * GIB, 5_000_000)
    assert (row.partition_hours, row.currency) == (1, "EUR")
    assert row.amount == Decimal("13.00")


def test_the_largest_counts(frame: Frame) -> None:
    """Sums of the largest counts that an event may have neither overflow nor lose a byte."""
    most = 1 << 53
    events = [make_event(at=10_000 * step, bytes_in=most, bytes_out=most, requests=most) for step in range(3)]
    (row,) = chargeback(frame(*events), PRICES).collect()
    assert (row.bytes_in, row.bytes_out, row.requests) == (3 * most,) * 3
    exact = Fraction(3 * most, GIB) * Fraction("0.15") + Fraction(3 * most, 10**6) * Fraction("0.20")
    assert abs(Fraction(row.amount) - exact) < Fraction("0.01")


def test_a_partition_hour_is_an_hour_in_which_the_tenant_used_the_partition(frame: Frame) -> None:
    table = chargeback(
        frame(
            make_event(),
            make_event(at=10_000),
            make_event(broker=2, at=20_000),
            make_event(api="Fetch"),
            make_event(partition=1),
            make_event(at=HOUR_MS),
            make_event(topic=None, partition=None),
        ),
        PRICES,
    )
    assert [row.partition_hours for row in table.collect()] == [3]


def test_cents_go_to_those_who_lost_the_most(frame: Frame) -> None:
    """Three times a third of a cent and half a cent are 1.5 cents, rounded to 2."""
    prices = Prices(currency="EUR", per_million_requests=Decimal(1))
    events = [make_event(user=user, requests=3333) for user in ("a", "b", "c")]
    table = chargeback(frame(*events, make_event(user="d", requests=5001)), prices)
    assert amounts(table) == {
        "d": Decimal("0.01"),
        "a": Decimal("0.01"),
        "b": Decimal("0.00"),
        "c": Decimal("0.00"),
    }


def test_each_cluster_has_its_own_bill(frame: Frame) -> None:
    """Each of them is 0.5 cents, rounded to a cent; together they are one cent."""
    prices = Prices(currency="EUR", per_million_requests=Decimal(1))
    events = [make_event(cluster=cluster, user="a", requests=5000) for cluster in ("east", "west")]
    found = chargeback(frame(*events), prices).collect()
    assert sorted((row.cluster, row.user, row.requests, row.amount) for row in found) == [
        ("east", "a", 5000, Decimal("0.01")),
        ("west", "a", 5000, Decimal("0.01")),
    ]


def test_tiers_are_filled_one_after_the_other(frame: Frame) -> None:
    tiers = [
        Tier(Decimal("0.10"), Decimal(10)),
        Tier(Decimal("0.08"), Decimal(100)),
        Tier(Decimal("0.01")),
    ]
    prices = Prices(currency="EUR", per_gib_in=tiers)
    sizes = {"small": 4, "edge": 10, "middle": 60, "large": 1100}
    table = chargeback(
        frame(*[make_event(user=user, bytes_in=size * GIB) for user, size in sizes.items()]), prices
    )
    assert amounts(table) == {
        "small": Decimal("0.40"),
        "edge": Decimal("1.00"),
        "middle": Decimal("5.00"),
        "large": Decimal("18.20"),
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_amounts_add_up_to_the_bill(frame: Frame, seed: int) -> None:
    random = Random(seed)
    events = [
        make_event(
            at=10_000 * step,
            user=f"u{random.randrange(60)}",
            bytes_in=random.randrange(10**9),
            bytes_out=random.randrange(10**10),
            requests=random.randrange(10**5),
            partition=random.randrange(5),
        )
        for step in range(400)
    ]
    rows = chargeback(frame(*events), PRICES).collect()
    used = {(event["user"], event["partition"], event["interval_start_ms"] // HOUR_MS) for event in events}
    bill = (
        Fraction(sum(event["bytes_in"] for event in events), GIB) * Fraction("0.10")
        + Fraction(sum(event["bytes_out"] for event in events), GIB) * Fraction("0.05")
        + Fraction(sum(event["requests"] for event in events), 10**6) * Fraction("0.20")
        + len(used) * Fraction("0.001")
    )
    exact = Decimal(bill.numerator) / Decimal(bill.denominator)
    assert sum(row.amount for row in rows) == exact.quantize(Decimal("0.01"), ROUND_HALF_UP)
    assert sum(row.bytes_in for row in rows) == sum(event["bytes_in"] for event in events)
    for row in rows:
        own = Decimal(row.bytes_in) / GIB * Decimal("0.10") + Decimal(row.bytes_out) / GIB * Decimal("0.05")
        own += Decimal(row.requests) / 10**6 * Decimal("0.20") + row.partition_hours * Decimal("0.001")
        assert abs(row.amount - own) < Decimal("0.01")


def test_the_job(run_job: Callable[..., Result], tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event(bytes_in=GIB, requests=0)])
    prices = tmp_path / "prices.yaml"
    prices.write_text("{currency: EUR, per_gib_in: 0.10, per_partition_hour: 0.001}")
    options = ("--events", lines, "--out", tmp_path / "out", "--prices", prices)
    result = run_job("chargeback", *options, "--from", "2025-12-01", "--to", "2026-01-01")
    assert result.exit_code == 0, result.output
    (row,) = read_rows(tmp_path / "out/chargeback")
    assert (row["from"], row["to"]) == (datetime(2025, 12, 1), datetime(2026, 1, 1))
    assert (row.user, row.amount) == ("alice", Decimal("0.10"))
