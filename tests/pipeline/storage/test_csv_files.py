"""CSV files: readers get each cell back as it was, and spreadsheets find no formula."""

import csv
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.storage.csv_files import write_csv

TEXTS = [
    "plain",
    "a,b",
    'q"uote',
    '"',
    'back\\"slash',
    "back\\",
    "\\",
    "new\nline",
    "end\n",
    "carriage\rreturn",
    "both\r\nof them",
    " space around ",
    "a\tb",
    "#comment",
    "größer",
    "\u2028",
]
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\ttab", "\rreturn", "\nline", "\uff1d1", "'=1+1", "'"]
PATTERN = "id int, text string, size bigint"


@pytest.mark.parametrize("reader", ["python", "spark"])
def test_cells_come_back_as_they_were(spark: SparkSession, tmp_path: Path, reader: str) -> None:
    table = spark.createDataFrame([(place, text, -place) for place, text in enumerate(TEXTS)], PATTERN)
    file = write_csv(table, f"{tmp_path}/table.csv")
    if reader == "python":
        with Path(file).open(newline="") as lines:
            found = {int(row["id"]): (row["text"], int(row["size"])) for row in csv.DictReader(lines)}
    else:
        options = {"header": "true", "multiLine": "true", "escape": '"', "lineSep": "\n"}
        rows = spark.read.options(**options).schema(PATTERN).csv(file).collect()
        found = {row.id: (row.text, row["size"]) for row in rows}
    assert found == {place: (text, -place) for place, text in enumerate(TEXTS)}


def test_no_text_is_a_formula(spark: SparkSession, tmp_path: Path) -> None:
    """An apostrophe comes before it, also before an apostrophe, so that different texts stay different."""
    table = spark.createDataFrame([(place, text, -5) for place, text in enumerate(FORMULAS)], PATTERN)
    file = write_csv(table, f"{tmp_path}/table.csv")
    with Path(file).open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["text"] for row in rows] == [f"'{text}" for text in FORMULAS]
    assert {row["size"] for row in rows} == {"-5"}


def test_null_is_an_empty_cell(spark: SparkSession, tmp_path: Path) -> None:
    file = write_csv(spark.createDataFrame([(1, None, None), (2, "", 0)], PATTERN), f"{tmp_path}/table.csv")
    assert Path(file).read_bytes() == b'id,text,size\n1,,\n2,"",0\n'
