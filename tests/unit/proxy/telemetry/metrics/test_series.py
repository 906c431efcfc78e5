"""A family keeps its largest series; the rest is added up, and a long list gives others a turn."""

import random
from collections.abc import Generator

import pytest

from proxy.quota.usage import REST
from proxy.telemetry.metrics.series import (
    AT_A_TIME,
    HALF_LIFE_SECONDS,
    MAX_SERIES,
    LargestCounters,
    RestSums,
    Series,
    bounded,
    bounded_steps,
    freed_steps,
)


@pytest.mark.parametrize("kept", [0, 1])
def test_the_smallest_series_are_added_up(kept: int) -> None:
    series: dict[tuple[str, ...], float] = {
        ("in", str(number)): float(number) for number in range(MAX_SERIES + 2)
    }
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


def test_a_dictionary_is_freed_in_steps() -> None:
    series = {(str(number),): 1.0 for number in range(3 * AT_A_TIME + 1)}
    sizes = [len(series) for _ in freed_steps(series)]
    assert sizes == [2 * AT_A_TIME + 1, AT_A_TIME + 1, 1, 0]


def result(steps: Generator[None, None, Series]) -> Series:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Series = end.value
            return found


def test_sums_of_the_rest_do_not_decrease() -> None:
    sums = RestSums()
    alice, rest, other = ("in", "alice"), ("in", REST), ("out", REST)
    assert sums.shown({alice: 9.0}) == {alice: 9.0}
    assert sums.shown({alice: 9.0, rest: 10.0}) == {alice: 9.0, rest: 10.0}
    assert sums.shown({rest: 4.0, other: 1.0}) == {rest: 10.0, other: 1.0}, "a bucket was dropped"
    assert sums.shown({rest: 6.0, other: 1.0}) == {rest: 12.0, other: 1.0}
    assert sums.shown({alice: 1.0}) == {alice: 1.0, rest: 12.0, other: 1.0}, "there are few series again"
    assert sums.shown({rest: 2.0}) == {rest: 14.0, other: 1.0}


def test_no_counter_goes_backwards_and_the_sums_stay_right() -> None:
    """Scrape after scrape, while other clients become the largest."""
    choice = random.Random(5)
    counters = LargestCounters()
    series: Series = {("in", "u", str(number)): 1.0 for number in range(2 * MAX_SERIES)}
    before: Series = {}
    for _ in range(12):
        for key in choice.sample(list(series), 300):
            series[key] += choice.randrange(1, 100_000)
        found = result(counters.steps(dict(series)))
        assert len(found) == MAX_SERIES + 1
        assert sum(found.values()) == sum(series.values())
        for key, value in found.items():
            # A series that was not shown before starts again, from what it has had since.
            assert value >= before.get(key, 0.0)
        before = found


def test_the_largest_are_shown_whenever_they_come() -> None:
    counters = LargestCounters()
    series: Series = {("in", "u", str(number)): 5.0 for number in range(2 * MAX_SERIES)}
    result(counters.steps(dict(series)))
    series["in", "u", "newcomer"] = 1000.0
    assert result(counters.steps(dict(series)))["in", "u", "newcomer"] == 1000.0


def test_idle_counters_make_room_for_those_that_grow() -> None:
    """However large they have become."""
    now = 0.0
    counters = LargestCounters(lambda: now)
    series: Series = {("in", "u", str(number)): 1e6 for number in range(MAX_SERIES)}
    result(counters.steps(dict(series)))
    series["in", "u", "tenant"] = 0.0
    shown: list[Series] = []
    for _ in range(20):
        now += HALF_LIFE_SECONDS
        series["in", "u", "tenant"] += 100.0
        shown.append(result(counters.steps(dict(series))))
    assert ("in", "u", "tenant") not in shown[0]
    values = [found["in", "u", "tenant"] for found in shown if ("in", "u", "tenant") in found]
    assert len(values) > 5
    assert values == sorted(values)
    assert all(sum(found.values()) == 1e6 * MAX_SERIES + 100.0 * n for n, found in enumerate(shown, 1))
    rests = [found["in", REST, REST] for found in shown]
    assert rests == sorted(rests)


def test_counters_of_the_same_size_do_not_take_turns() -> None:
    counters = LargestCounters(lambda: 0.0)
    series: Series = {("in", "u", str(number)): 100.0 for number in range(2 * MAX_SERIES)}
    first = set(result(counters.steps(dict(series))))
    for turn in range(4):
        for number in range(2 * MAX_SERIES):
            series["in", "u", str(number)] += 100.0 + (number + turn) % 7
        assert set(result(counters.steps(dict(series)))) == first


def test_a_client_that_has_gone_to_the_rest_and_comes_again_starts_from_zero() -> None:
    counters = LargestCounters()
    key, rest = ("in", "u", "c"), ("in", REST, REST)
    assert result(counters.steps({key: 50.0, rest: 7.0})) == {key: 50.0, rest: 7.0}
    assert result(counters.steps({rest: 57.0})) == {rest: 57.0}
    assert result(counters.steps({key: 3.0, rest: 57.0})) == {key: 3.0, rest: 57.0}
