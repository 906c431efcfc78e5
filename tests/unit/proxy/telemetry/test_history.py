"""The history of half an hour, and its bounds."""

from typing import Any
from weakref import WeakSet

from proxy.telemetry.history import POINTS, SERIES, History


def row(name: str, rate: float, limit: float = 10.0, *, throttled: bool = False) -> dict[str, Any]:
    return {
        "kind": "producer_byte_rate",
        "broker": 1,
        "entity": {"user": name},
        "rate": rate,
        "limit": limit,
        "throttled": throttled,
    }


def sample(history: History, *rows: dict[str, Any]) -> None:
    take = history.begin()
    for each in rows:
        take(each)
    history.end()


def used(history: History) -> dict[str, list[float | None]]:
    return {series["entity"]["user"]: series["used"] for series in history.shown()["series"]}


def test_parts_of_the_limit_oldest_first() -> None:
    history = History()
    sample(history, row("a", 5.0), row("idle", 0.0), row("waits", 0.0, throttled=True))
    sample(history, row("a", 20.0))
    sample(history, row("a", 0.0), row("b", 5.0, limit=0.0))
    assert used(history) == {"a": [0.5, 2.0, 0.0], "waits": [0.0, None, None], "b": [None, None, 1.0]}


def test_half_an_hour_is_kept_and_idle_buckets_leave() -> None:
    history = History()
    sample(history, row("short", 1.0), row("long", 1.0))
    for number in range(POINTS - 1):
        sample(history, row("long", float(number)))
    assert len(used(history)["long"]) == POINTS
    assert "short" in used(history)
    sample(history, row("long", 1.0))
    assert list(used(history)) == ["long"]
    assert len(used(history)["long"]) == POINTS


def test_the_busiest_series_are_kept() -> None:
    history = History()
    sample(history, *(row(f"user-{number}", float(number + 1)) for number in range(SERIES + 7)))
    kept = used(history)
    assert len(kept) == SERIES
    assert "user-0" not in kept
    assert f"user-{SERIES + 6}" in kept


class Name(str):
    """A name whose end can be observed."""


def test_a_sample_of_very_many_buckets_keeps_few_of_them_at_any_time() -> None:
    history = History()
    sample(history, row("before", 1.0))
    alive: WeakSet[Name] = WeakSet()
    most = 0
    take = history.begin()
    for number in range(5 * SERIES):
        name = Name(f"user-{number}")
        alive.add(name)
        take(row(name, float(number % 100)))
        del name
        most = max(most, len(alive))
    take(row("before", 99.0))
    history.end()
    assert most <= 2 * SERIES
    kept = used(history)
    assert len(kept) == SERIES
    assert kept["before"] == [0.1, 9.9]
    assert min(series[-1] or 0.0 for series in kept.values()) >= 8.0


def test_a_sample_that_was_not_ended_adds_nothing() -> None:
    history = History()
    history.begin()(row("lost", 5.0))
    sample(history, row("a", 5.0))
    assert list(used(history)) == ["a"]


def test_empty() -> None:
    assert History().shown()["series"] == []
