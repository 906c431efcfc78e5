"""Values: numbers however they are written, whole ones without a fraction."""

import pytest

from proxy.cli.quotas.number import parse_number, plain_number, show_number


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1.0), (2.5, 2.5), ("1048576", 1048576.0), ("1e6", 1e6), (" 7 ", 7.0), (-1, -1.0)],
)
def test_numbers(value: object, number: float) -> None:
    assert parse_number(value) == number


@pytest.mark.parametrize("value", [True, None, "", "1 MiB", "nan", float("inf"), "-inf", [], 10**400])
def test_no_numbers(value: object) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        parse_number(value)


def test_shown_without_a_fraction_where_there_is_none() -> None:
    assert show_number(1e9) == "1000000000"
    assert show_number(12.5) == "12.5"
    assert isinstance(plain_number(3.0), int)


def test_kafka_s_unlimited_survives_being_shown() -> None:
    assert parse_number(show_number(float(2**63 - 1))) == float(2**63 - 1)
