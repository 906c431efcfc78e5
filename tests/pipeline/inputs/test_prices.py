"""Prices: what a file of prices may say."""

from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.inputs.prices import MOST_UP_TO, Prices, read_prices
from proxy.bounded_yaml import MAX_DEPTH

PRICES = Prices(
    currency="EUR",
    per_gib_in=Decimal("0.10"),
    per_gib_out=Decimal("0.05"),
    per_million_requests=Decimal("0.20"),
    per_partition_hour=Decimal("0.001"),
)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("per_gib_in: 1", "`currency`"),
        ("{currency: EUR, per_gb: 1}", "`per_gb`"),
        ("{currency: EUR, per_gib_in: -1}", "per_gib_in: -1 "),
        ("{currency: EUR, per_gib_in: .nan}", "$.per_gib_in "),
        ("{currency: EUR, per_gib_in: 'sNaN'}", "per_gib_in: sNaN "),
        ("{currency: EUR, per_gib_out: .inf}", "$.per_gib_out "),
        ("{currency: EUR, per_gib_out: -.inf}", "$.per_gib_out "),
        ("{currency: EUR, per_gib_in: [{price: 1, up_to: 'NaN'}, {price: 2}]}", "up_to is NaN"),
        (
            "{currency: EUR, per_gib_in: [{price: 1, up_to: .inf}, {price: 2}]}",
            "$.per_gib_in[0].up_to ",
        ),
        ("{currency: EUR, per_gib_in: 0.1234567}", "per_gib_in: 0.1234567 "),
        ("{currency: EUR, per_gib_in: []}", "per_gib_in: expected a price"),
        ("{currency: EUR, per_gib_in: [{price: 1}, {price: 2}]}", "every tier but the last"),
        (
            "{currency: EUR, per_gib_in: [{price: 1, up_to: 5}, {price: 1, up_to: 5}, {price: 2}]}",
            "per_gib_in: up_to is 5, ",
        ),
        ("{currency: EUR, per_gib_in: [{price: 1, up_to: 1e+13}, {price: 2}]}", f"{MOST_UP_TO}"),
        ("{currency: EUR, per_gib_in: [", "line 2, column 1"),
        ("{currency: EUR, per_gib_in: " + "[" * 100_000, f" {MAX_DEPTH} "),
    ],
)
def test_wrong_prices_are_named(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        read_prices(file)
    assert named in str(error.value)


def test_prices_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "{currency: EUR, per_gib_in: 0.10, per_gib_out: 0.05, per_million_requests: 0.20,"
        " per_partition_hour: 0.001}"
    )
    assert read_prices(file) == PRICES
