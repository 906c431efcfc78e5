"""A folder of invoices is replaced as a whole."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.jobs.invoice_files import InvoiceFiles
from pipeline.report.figures import Use
from pipeline.report.invoice_page import invoice_file
from pipeline.schema import INVOICE_FILES, of_period
from pipeline.window import Window
from tests.pipeline.report.test_invoice_page import BILLING, INVOICE


def test_a_run_replaces_all_files_or_none(spark: SparkSession, tmp_path: Path) -> None:
    """Also on a file system that is named by a URL. A tenant that is gone has no file."""
    period = Window(1_772_323_200_000, 1_775_001_600_000)
    folder = tmp_path / "invoice-files"
    users = ["../a", "=1+1", "a,b\nc"]
    for payers in (["gone"], users):
        with InvoiceFiles(spark, tmp_path.as_uri(), BILLING, period) as files:
            for user in payers:
                files.add(replace(INVOICE, user=user))
    no_amount = replace(INVOICE, user="failed", use=Use())
    with pytest.raises(TypeError), InvoiceFiles(spark, str(tmp_path), BILLING, period) as files:
        files.add(no_amount)
    assert [path.name for path in tmp_path.iterdir()] == ["invoice-files"]
    names = {user: invoice_file(("local", user, "billing")) for user in users}
    assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} == {
        "index.csv",
        *names.values(),
    }
    assert "1.05" in (folder / names["=1+1"]).read_text()
    with (folder / "index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["user"]: row["file"] for row in rows} == {
        "../a": names["../a"],
        "'=1+1": names["=1+1"],
        "a,b\nc": names["a,b\nc"],
    }
    assert {(row["amount"], row["currency"], row["cost_center"]) for row in rows} == {("1.05", "EUR", "4711")}
    assert {(row["from"], row["to"]) for row in rows} == {
        ("2026-03-01T00:00:00.000Z", "2026-04-01T00:00:00.000Z")
    }


def test_without_tenants_the_list_has_only_its_header(spark: SparkSession, tmp_path: Path) -> None:
    """Also the files of an earlier run are gone."""
    for payers in ([INVOICE], []):
        with InvoiceFiles(spark, str(tmp_path), BILLING, Window()) as files:
            for invoice in payers:
                files.add(invoice)
    assert [path.name for path in (tmp_path / "invoice-files").glob("[!.]*")] == ["index.csv"]
    assert (
        tmp_path / "invoice-files/index.csv"
    ).read_text() == f"{','.join(of_period(INVOICE_FILES).names)}\n"
