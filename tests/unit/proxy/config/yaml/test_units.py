"""The numbers that messages suggest for values with units."""

import pytest

from proxy.config.yaml.units import number_hint, seconds_hint


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("1MB/s", ["1000000", "1048576"]),
        ("10m", ["10000000", "10485760"]),
        ("100 KB", ["100000", "102400"]),
        ("2kb/sec", ["2000", "2048"]),
        ("1.5 GiB", ["1610612736"]),
        ("512 bytes", ["512"]),
        ("50%", ["50"]),
        ("0.5 %", ["0.5"]),
        ("1,000,000", ["1000000"]),
        ("1_000", ["1000"]),
        ("1e6", ["1000000"]),
        ("2.5E+3", ["2500"]),
        ("1e-9", ["0.000000001"]),
    ],
)
def test_the_number_to_write(value: str, numbers: list[str]) -> None:
    hint = number_hint(value)
    assert [number for number in numbers if f" {number}" in hint] == numbers


@pytest.mark.parametrize(
    "value",
    [
        "fast",
        "",
        "1.000,5",
        "1,5",
        "3 i",
        "10 Mbps",
        "1e6x",
        "1e308",
        "1e-99",
        "٣MB",
        None,
        5,
        True,
        [],
        "9" * 10_000 + "m",
    ],
)
def test_no_guess(value: object) -> None:
    assert number_hint(value) == ""


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("10m", "; write 600"),
        ("1.5 h", "; write 5400"),
        ("250ms", "; write 0.25"),
        ("30 seconds", "; write 30"),
        ("2d", "; write 172800"),
        ("7", "; write 7"),
        ("10 MB", ""),
        ("1h30m", ""),
        ("soon", ""),
        (None, ""),
    ],
)
def test_the_seconds_to_write(value: object, hint: str) -> None:
    assert seconds_hint(value) == hint
