"""Layout: how the requests of an interval are spread over it."""

import pytest

from pipeline.transforms.replay.layout import Interval, connections_of, lay_out


@pytest.mark.parametrize(
    ("throttled", "throttle_ms", "connections"),
    [
        (0, 0, 1),
        (100, 9_000, 1),
        (12, 10_800, 1),
        (1, 50_000, 1),
        (3, 60_000, 3),
        (100, 50_000, 5),
        (1 << 40, 1 << 55, 20_000),
        (1 << 53, 1 << 53, 20_000),
    ],
)
def test_connections_are_told_by_how_long_they_wait(
    throttled: int, throttle_ms: int, connections: int
) -> None:
    assert connections_of(throttled, throttle_ms, 10_000) == connections


@pytest.mark.parametrize("throttled", [0.0, 1e9])
def test_impossible_sums_have_few_steps(throttled: float) -> None:
    interval = Interval(0.0, 10.0, 2.0**53, 2.0**53, throttled, throttled)
    steps = list(lay_out(interval, 1000.0, 0.9, 1.0, 250.0))
    assert len(steps) < 50_000
    assert sum(size for _, size in steps) == pytest.approx(2.0**53)


def test_an_interval_is_laid_out_whole() -> None:
    steps = list(lay_out(Interval(100.0, 10.0, 5000.0, 50, 20, 4.0), 500.0, 0.9, 1.0, 100.0))
    assert sum(size for _, size in steps) == pytest.approx(5000)
    assert all(100 <= at < 110 for at, _ in steps)
    assert [at for at, _ in steps] == sorted(at for at, _ in steps)
