"""The report: a golden page of a fixed hour, with its tables."""

import csv
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.pipeline.report.test_page import Page
from tests.support.messages.usage_events import make_event, write_lines

RunJob = Callable[..., Result]
GOLDEN: Final = Path(__file__).parents[1] / "golden"


def test_the_report_of_a_fixed_hour(run_job: RunJob, tmp_path: Path) -> None:
    """To accept a change, copy the file that the failure names over the golden page, and look at it."""
    result = run_job(
        *("report", "--events", GOLDEN / "hour.jsonl", "--out", tmp_path),
        *("--prices", GOLDEN / "prices.yaml", "--quotas", GOLDEN / "quotas.yaml"),
    )
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text()
    golden = GOLDEN / "report.html"
    assert page == golden.read_text(), f"{tmp_path / 'report.html'} differs from {golden}"
    for table in ("usage", "throttle", "chargeback", "invoices", "headroom"):
        assert list((tmp_path / table).rglob("*.parquet"))
        assert (tmp_path / f"{table}.csv").is_file()
    with (tmp_path / "chargeback.csv").open() as file:
        assert sorted((row["user"], row["client_id"], row["amount"]) for row in csv.DictReader(file)) == [
            ("alice", "writer", "0.69"),
            ("bob", "reader", "0.12"),
            ("bob", "writer", "0.68"),
            ("carol", "reader", "0.01"),
            ("carol", "writer", "0.11"),
        ]


@pytest.fixture(scope="module")
def reported(run_job: RunJob, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report, and of a replay, without --to."""
    folder = tmp_path_factory.mktemp("reported")
    quota = {"quota": "producer_byte_rate", "throttle_ms": 5, "throttled_requests": 1}
    events = [make_event(at=10_000 * place, **quota) for place in range(3)]
    names = [("a / b", "c"), ("a", "b / c")]
    events += [make_event(user=user, client_id=client_id, bytes_in=1 << 30) for user, client_id in names]
    events += [make_event(cluster=cluster, user="both", bytes_in=1 << 30) for cluster in ("east", "west")]
    lines = write_lines(folder / "events.jsonl", [*events, make_event(at=-10_000), "no event"])
    quotas = ("--prices", GOLDEN / "prices.yaml", "--quotas", GOLDEN / "quotas.yaml")
    for job, options in (("report", quotas), ("replay", quotas[2:])):
        result = run_job(job, "--events", lines, "--out", folder, "--from", "2025-12-31T12:00", *options)
        assert result.exit_code == 0, result.output
    return folder


def test_a_tenant_is_a_cluster_a_user_and_a_client_id(reported: Path) -> None:
    """Names with the label's separator do not make two tenants one, nor do two clusters share a bill."""
    page = Page((reported / "report.html").read_text())
    labels = {'local / "a / b" / c', 'local / a / "b / c"', "east / both / billing", "west / both / billing"}
    assert labels < set(page.texts)
    assert {"All 1 of east", "All 3 of local", "All 1 of west", "bill of west, EUR"} < set(page.texts)
    with (reported / "chargeback.csv").open(newline="") as file:
        assert sorted((row["cluster"], row["user"]) for row in csv.DictReader(file)) == [
            ("east", "both"),
            ("local", "a"),
            ("local", "a / b"),
            ("local", "alice"),
            ("west", "both"),
        ]


def test_tables_say_their_period(spark: SparkSession, reported: Path) -> None:
    """Without --to it ends with the last interval of the events."""
    for name in ("usage", "throttle", "chargeback", "invoices", "headroom", "replay"):
        table = spark.read.parquet(str(reported / name))
        (row,) = table.select(*[F.col(end).cast("string") for end in ("from", "to")]).distinct().collect()
        assert tuple(row) == ("2025-12-31 12:00:00", "2025-12-31 12:00:30"), name
    text = "Clusters east, local, west, from 2025-12-31 12:00 to 2025-12-31 12:00:30, UTC"
    assert text in Page((reported / "report.html").read_text()).texts
    assert not list(reported.glob(".*.rows"))


NAMES: Final = ["a,b", 'q"u', "<script>alert(1)</script>", "\u05d0\u05d1", "\U0001f600", "=1+1", ""]
TENANTS: Final = """
tenants:
  - {user: "a,b", name: "Comma, Inc.", cost_center: "=4711"}
  - {user: "<script>alert(1)</script>", cost_center: "<b>"}
"""


def test_invoices_of_hostile_names_add_up(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    """Of two months, of which the bill of the first is what the second is compared with. One tenant used
    nothing that has a price, one is new, and one is gone.
    """
    march, april = (
        [
            make_event(interval_start_ms=start, user=user, client_id="c", requests=0, bytes_out=0, **used)
            for user, used in uses.items()
        ]
        for start, uses in (
            (1_772_323_200_000, {name: {"bytes_in": 123_456_789 * size} for size, name in enumerate(NAMES)}),
            (1_775_001_600_000, {"a,b": {"bytes_in": 1 << 30}, "new": {"bytes_in": 1 << 29}}),
        )
    )
    lines = write_lines(tmp_path / "events.jsonl", [*march, *april])
    tenants = tmp_path / "tenants.yaml"
    tenants.write_text(TENANTS)
    prices = tmp_path / "prices.yaml"
    prices.write_text("{currency: EUR, per_gib_in: 3.333333}")
    options = ("report", "--events", lines, "--prices", prices, "--tenants", tenants)
    first, second, third = (tmp_path / name for name in ("march", "april", "april-by-events"))
    for out, period, more in (
        (first, ("2026-03-01", "2026-04-01"), ()),
        (second, ("2026-04-01", "2026-05-01"), ("--previous", first)),
        (third, ("2026-04-01", "2026-05-01"), ()),
    ):
        result = run_job(*options, "--out", out, "--from", period[0], "--to", period[1], *more)
        assert result.exit_code == 0, result.output
    bill = spark.read.parquet(str(first / "chargeback"))
    sums = bill.agg(F.sum("amount"), F.sum("bytes_in")).first()
    assert sums is not None
    assert sums[0] == (Decimal(sums[1]) / (1 << 30) * Decimal("3.333333")).quantize(Decimal("0.01"))
    assert bill.where(F.col("amount") == 0).count() == 1
    by_line = spark.read.parquet(str(first / "invoices")).groupBy("user").agg(F.sum("amount").alias("amount"))
    assert sorted(map(tuple, by_line.collect())) == sorted(
        map(tuple, bill.select("user", "amount").collect())
    )
    page = Page((first / "report.html").read_text())
    assert "script" not in page.tags
    assert page.texts.count("Invoice:") == len(NAMES)
    assert {"Comma, Inc.", "=4711", "<b>", "\u05d0\u05d1"} < set(page.texts)
    assert not any(text.startswith("Compared with") for text in page.texts)
    with (first / "invoice-files/index.csv").open(newline="") as file:
        listed = {row["user"]: row for row in csv.DictReader(file)}
    assert sum(Decimal(row["amount"]) for row in listed.values()) == sums[0]
    assert len(list((first / "invoice-files").glob("*.html"))) == len(NAMES)
    texts = Page((first / "invoice-files" / listed["a,b"]["file"]).read_text()).texts
    assert {"Comma, Inc.", "=4711", listed["a,b"]["amount"], "2026-03-01 00:00 to 2026-04-01 00:00"} < set(
        texts
    )
    with (first / "invoices.csv").open(newline="") as file:
        assert {row["cost_center"] for row in csv.DictReader(file)} == {"'=4711", "<b>", ""}
    with (first / "usage.csv").open(newline="") as file:
        users = [name.replace("=", "'=", 1) if name.startswith("=") else name for name in NAMES]
        assert sorted(row["user"] for row in csv.DictReader(file)) == sorted(users)
    billed, counted = (Page((out / "report.html").read_text()).texts for out in (second, third))
    # Only the texts that say where the amounts before come from are different.
    texts_of = [
        [text for text in found if not text.startswith(("The largest changes", "The amount before"))]
        for found in (billed, counted)
    ]
    assert texts_of[0] == texts_of[1]
    # The name of a tenant's file is the same in each period.
    later = Page((second / "invoice-files" / listed["a,b"]["file"]).read_text()).texts
    assert "Compared with 2026-03-01 00:00 to 2026-04-01 00:00" in later
    movers = billed[billed.index("Top movers") : billed.index("Cost")]
    assert {"a,b / c", "new / c", "=1+1 / c"} < set(movers)
    # Of bytes and of amounts.
    assert movers.count("-100 %") == 2 * (len(NAMES) - 1)


def test_a_bill_of_another_currency_is_no_comparison(run_job: RunJob, tmp_path: Path) -> None:
    """The job says so before it computes a table. Its locks of the tables are files."""
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    prices = tmp_path / "prices.yaml"
    prices.write_text("{currency: EUR}")
    bill = run_job("chargeback", "--events", lines, "--out", tmp_path / "EUR", "--prices", prices)
    assert bill.exit_code == 0, bill.output
    prices.write_text("{currency: USD}")
    for name, hint in (("EUR", "USD"), ("nowhere", "nowhere")):
        options = ("--prices", prices, "--previous", tmp_path / name)
        result = run_job("report", "--events", lines, "--out", tmp_path / "out", *options)
        assert result.exit_code == 2, result.output
        assert hint in result.output
        assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".lock"}
    assert run_job("report", "--events", lines, "--out", tmp_path, "--tenants", prices).exit_code == 2


def test_periods_that_meet_within_an_interval_share_no_event(
    spark: SparkSession, run_job: RunJob, tmp_path: Path
) -> None:
    """An interval counts in the period in which it begins."""
    lines = write_lines(
        tmp_path / "events.jsonl", [make_event(at=at, requests=1) for at in (0, 10_000, 20_000)]
    )
    found = []
    for start, end in (("12:00:00", "12:00:15"), ("12:00:15", "13:00:00")):
        period = ("--from", f"2025-12-31T{start}", "--to", f"2025-12-31T{end}")
        options = ("--prices", GOLDEN / "prices.yaml", *period)
        result = run_job("chargeback", "--events", lines, "--out", tmp_path, *options)
        assert result.exit_code == 0, result.output
        table = spark.read.parquet(str(tmp_path / "chargeback"))
        ends = [F.date_format(name, "HH:mm:ss") for name in ("from", "to")]
        found += [tuple(row) for row in table.select(*ends, "requests").collect()]
    assert found == [("12:00:00", "12:00:15", 2), ("12:00:15", "13:00:00", 1)]
