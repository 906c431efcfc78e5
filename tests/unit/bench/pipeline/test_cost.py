"""What is made of measured seconds: a fixed part, and a cost for each further event."""

import pytest

from bench.pipeline.cost import Result, cost


def results(*seconds: tuple[int, float]) -> list[Result]:
    return [Result("spark", "usage", events, found, 1000.0) for events, found in seconds]


def test_a_line_is_found() -> None:
    found = cost(results((10_000_000, 60.0), (100_000, 10.5), (1_000_000, 15.0)))
    assert found is not None
    assert found.fixed_seconds == pytest.approx(10.0)
    assert found.steps == pytest.approx((5e-6, 5e-6))
    assert found.growth == pytest.approx(1.0)
    assert found.is_linear


def test_what_gets_cheaper_is_linear() -> None:
    found = cost(results((1_000_000, 15.0), (10_000_000, 60.0), (50_000_000, 160.0)))
    assert found is not None
    assert found.growth == pytest.approx(0.5)
    assert found.is_linear


@pytest.mark.parametrize("seconds", [90.0, 400.0])
def test_what_grows_anywhere_is_not(seconds: float) -> None:
    found = cost(results((100_000, 10.0), (1_000_000, 14.0), (10_000_000, seconds), (50_000_000, 200.0)))
    assert found is not None
    assert not found.is_linear


def test_two_sizes_cannot_grow_and_one_says_nothing() -> None:
    found = cost(results((100_000, 10.0), (1_000_000, 14.0)))
    assert found is not None
    assert found.growth == 0.0
    assert cost(results((100_000, 10.0))) is None


def test_the_rate_is_of_all_the_time() -> None:
    assert results((100_000, 10.0))[0].rate == 10_000
