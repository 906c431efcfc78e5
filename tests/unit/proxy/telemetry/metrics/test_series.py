"""A family keeps its largest series; the rest is added up, and a long list gives others a turn."""

import pytest

from proxy.quota.usage import REST
from proxy.telemetry.metrics.series import AT_A_TIME, MAX_SERIES, Series, bounded, bounded_steps


@pytest.mark.parametrize("kept", [0, 1])
def test_the_smallest_series_are_added_up(kept: int) -> None:
    series = {("in", str(number)): float(number) for number in range(MAX_SERIES + 2)}
    found = bounded(series, kept)
    assert len(found) == MAX_SERIES + 1
    assert found[("in", REST) if kept else (REST, REST)] == 0 + 1
    assert found["in", str(MAX_SERIES + 1)] == MAX_SERIES + 1


def test_few_series_are_unchanged() -> None:
    series: Series = {("a",): 1.0, ("b",): 2.0}
    assert bounded(series) is series


def test_many_series_are_bounded_in_steps() -> None:
    count = 20 * AT_A_TIME
    series: Series = {(("in", "out")[n % 2], str(n)): float(n * 7919 % count) for n in range(count)}
    steps = bounded_steps(series)
    turns = 0
    while True:
        try:
            next(steps)
            turns += 1
        except StopIteration as end:
            found: Series = end.value
            break
    assert turns >= 10
    ranked = sorted(series.items(), key=lambda item: item[1], reverse=True)
    rests = {way: sum(v for key, v in ranked[MAX_SERIES:] if key[0] == way) for way in ("in", "out")}
    assert found == {**dict(ranked[:MAX_SERIES]), **{(way, REST): rest for way, rest in rests.items()}}
