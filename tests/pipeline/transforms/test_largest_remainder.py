"""The method of the largest remainder."""

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.transforms.largest_remainder import with_amount

Row = tuple[str, str, str]
"""Group, name, exact amount."""


def rounded(spark: SparkSession, *rows: Row, total: str | None = None) -> dict[str, Decimal]:
    table = spark.createDataFrame([*rows], "of string, name string, text string").select(
        "of", "name", F.col("text").cast("decimal(30,12)").alias("exact")
    )
    whole = None if total is None else F.lit(Decimal(total))
    found = with_amount(table, ["of"], ["name"], whole)
    assert found.columns == ["of", "name", "exact", "amount"]
    return {row["name"]: row.amount for row in found.collect()}


def cents(**amounts: int) -> dict[str, Decimal]:
    return {name: Decimal(amount) / 100 for name, amount in amounts.items()}


def test_missing_cents_go_to_the_largest_remainders_of_each_group(spark: SparkSession) -> None:
    rows = [("x", "a", "0.013"), ("x", "b", "0.019"), ("x", "c", "0.028"), ("y", "d", "0.005")]
    assert rounded(spark, *rows) == cents(a=1, b=2, c=3, d=1)


def test_equal_remainders_are_in_order(spark: SparkSession) -> None:
    """Three times 0.4 of a cent are one cent."""
    rows = [("x", name, "0.004") for name in ("b", "a", "c")]
    assert rounded(spark, *rows) == cents(a=1, b=0, c=0)


@pytest.mark.parametrize(("total", "amounts"), [("0.03", (1, 2)), ("0.02", (1, 1))])
def test_a_total_may_be_given(spark: SparkSession, total: str, amounts: tuple[int, int]) -> None:
    rows = [("x", "a", "0.0125"), ("x", "b", "0.0129")]
    assert rounded(spark, *rows, total=total) == cents(a=amounts[0], b=amounts[1])


def test_amounts_are_exact_beyond_the_digits_of_a_double(spark: SparkSession) -> None:
    rows = [("x", "a", "123456789012345.671"), ("x", "b", "0.004")]
    assert rounded(spark, *rows) == {"a": Decimal("123456789012345.67"), "b": Decimal("0.01")}
