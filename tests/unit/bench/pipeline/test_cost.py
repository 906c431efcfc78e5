"""What is made of measured seconds: a fixed part, and a cost for each event."""

import pytest

from bench.pipeline.cost import Result, fit


def results(*seconds: tuple[int, float]) -> list[Result]:
    return [Result("spark", "usage", "parquet", events, found, found, 1000.0) for events, found in seconds]


def test_a_line_is_found() -> None:
    line = fit(results((100_000, 10.5), (1_000_000, 15.0), (10_000_000, 60.0)))
    assert line is not None
    assert line.fixed_seconds == pytest.approx(10.0)
    assert line.seconds_per_event == pytest.approx(5e-6)
    assert line.off == pytest.approx(0.0, abs=1e-9)
    assert line.is_linear


def test_what_grows_faster_is_no_line() -> None:
    line = fit(results((100_000, 10.0), (1_000_000, 11.0), (10_000_000, 30.0), (50_000_000, 400.0)))
    assert line is not None
    assert not line.is_linear


def test_one_size_says_nothing() -> None:
    assert fit(results((100_000, 10.0), (100_000, 11.0))) is None


def test_the_rate_is_of_all_the_time() -> None:
    assert results((100_000, 10.0))[0].rate == 10_000
