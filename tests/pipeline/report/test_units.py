"""Units: numbers as people read them, and round numbers for axes."""

from datetime import datetime
from decimal import Decimal

import pytest

from pipeline.report import units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.size(0), "0 B"),
        (units.size(1023), "1023 B"),
        (units.size(1536), "1.5 KiB"),
        (units.rate(200 * 1024**2), "200 MiB/s"),
        (units.count(999), "999"),
        (units.count(2_370_000_000), "2.37 G"),
        (units.duration(120), "120 ms"),
        (units.duration(12_500), "12.5 s"),
        (units.duration(200_000), "3 min 20 s"),
        (units.duration(7_200_000), "2 h"),
        (units.duration(18_600_000), "5 h 10 min"),
        (units.percent(0.004), "< 1 %"),
        (units.percent(0.5), "50 %"),
        (units.percent(0.0), "0 %"),
        (units.change(0, 0), "0 %"),
        (units.change(0, 5), "new"),
        (units.change(100, 0), "-100 %"),
        (units.change(200, 225), "+12 %"),
        (units.change(Decimal("2.00"), Decimal("2.07")), "+3.5 %"),
        (units.change(1 << 60, (1 << 60) + 1), "+0.1 %"),
        (units.change(1, 12_345), "12,345 times"),
        (units.quantity(Decimal("1234.500000000000000000")), "1,234.500000"),
        (units.quantity(Decimal("7.000000000000000000")), "7"),
        (units.price(Decimal("0.100000")), "0.10"),
        (units.price(Decimal("0.000500")), "0.0005"),
        (units.price(Decimal(0)), "0.00"),
        (units.price(Decimal("1E+3")), "1,000.00"),
        (units.instant(datetime(2026, 3, 1)), "2026-03-01 00:00"),
        (units.instant(datetime(2026, 3, 1, 12, 0, 10)), "2026-03-01 12:00:10"),
    ],
)
def test_numbers_as_people_read_them(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("highest", "steps", "expected"),
    [
        (0.0, units.SIZES, [0, 1]),
        (900.0, units.SIZES, [0, 250, 500, 750, 1000]),
        (3 * 1024.0**3, units.SIZES, [0, 1024**3, 2 * 1024**3, 3 * 1024**3]),
        (5.2 * 3_600_000, units.TIMES, [0, 7_200_000, 14_400_000, 21_600_000]),
    ],
)
def test_axes_have_round_numbers(highest: float, steps: tuple[float, ...], expected: list[float]) -> None:
    assert units.ticks(highest, steps) == pytest.approx(expected)


def test_a_number_keeps_its_unit_until_it_would_round_to_the_next() -> None:
    assert [units.size(size) for size in (1023.4, 1023.6)] == ["1023 B", "1 KiB"]
    assert units.size(5 * 1024.0**7) == "5120 EiB"
