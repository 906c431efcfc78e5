"""A sweep hands over whole periods, each event once."""

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from pipeline.schema import IDENTITY
from pipeline.transforms.arrays.parcels import BAD, END, FIRST, READ, Packing
from pipeline.transforms.arrays.rows import Rows
from pipeline.transforms.arrays.sweep import Sweep
from pipeline.transforms.duplicates import EVENT_HOUR, ORDER, VALUES
from pipeline.window import ALWAYS, Window
from tests.support.messages.event_tables import as_table, random_events
from tests.support.messages.usage_events import HOUR_MS, START_MS, make_event

ALL = range(1 << 40)
ANY = (0, 1 << 62)
COLUMNS = (*IDENTITY, *VALUES)


def packing(**changes: Any) -> Packing:
    parts = {"counts": (), "window": ALWAYS, "parts": 1, "are_events": are_events, **changes}
    return Packing(**parts)


def are_events(rows: Rows) -> Any:
    return rows["requests"] >= 0


def table(events: Sequence[dict[str, Any]]) -> Any:
    found = as_table(events)
    return found.append_column(ORDER, pa.array(range(len(found)), pa.int64()))


def values(rows: Rows) -> list[str]:
    found = [column.to_pylist() for column in rows.values(COLUMNS, np.arange(len(rows)))]
    return [str(row) for row in zip(*found, strict=True)]


def expected(events: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(str(tuple(event[name] for name in COLUMNS)) for event in events)


@pytest.mark.parametrize("seed", range(5))
def test_periods_are_whole(seed: int) -> None:
    """Events come nearly in order: those of an hour in several tables, between others."""
    source = Random(seed)
    events = sorted(random_events(source, 200), key=lambda event: event["interval_start_ms"])
    sweep = Sweep(packing(), ALL)
    parts: list[Rows] = []
    for place in range(0, len(events), 20):
        some = events[place : place + 20]
        source.shuffle(some)
        before = min(event["interval_start_ms"] for event in some) // HOUR_MS
        parts += sweep.complete(before)
        sweep.add(table(some), ANY, is_counted=True)
    assert len(parts) > 1
    parts += sweep.complete(None)
    assert list(sweep.complete(None)) == []
    assert sorted(row for rows in parts for row in values(rows)) == expected(events)
    where = defaultdict(set)
    for number, rows in enumerate(parts):
        for hour in rows[EVENT_HOUR]:
            where[hour].add(number)
    assert all(len(numbers) == 1 for numbers in where.values())


def test_what_is_complete_waits_if_it_is_little() -> None:
    sweep = Sweep(packing(), ALL)
    sweep.add(table([make_event(at=at) for at in (0, HOUR_MS, HOUR_MS + 10_000)]), ANY, is_counted=True)
    assert list(sweep.complete(START_MS // HOUR_MS)) == []
    assert list(sweep.complete(START_MS // HOUR_MS + 1)) == []
    (rows,) = sweep.complete(START_MS // HOUR_MS + 2)
    assert len(rows) == 3


def test_other_periods_are_of_other_tasks() -> None:
    """Of a table that two tasks read, one counts the rows; both know the period of the events."""
    first = START_MS // HOUR_MS
    events = [make_event(at=at) for at in (0, HOUR_MS, 2 * HOUR_MS)] + [make_event(requests=-1)]
    for periods, is_counted in ((range(first, first + 1), True), (range(first + 1, first + 3), False)):
        sweep = Sweep(packing(), periods)
        sweep.add(table(events), ANY, is_counted=is_counted)
        (rows,) = sweep.complete(None)
        assert set(rows[EVENT_HOUR]) == set(periods)
        assert sweep.counted.values == {
            READ: 4 if is_counted else None,
            BAD: 1 if is_counted else None,
            FIRST: START_MS,
            END: START_MS + 2 * HOUR_MS + 10_000,
        }


def test_only_wanted_events_of_the_window_wait() -> None:
    after = START_MS + 10_000
    how = packing(
        window=Window(START_MS + 1, None), are_wanted=lambda rows: rows["interval_start_ms"] > after
    )
    sweep = Sweep(how, ALL)
    sweep.add(table([make_event(at=at) for at in (0, 10_000, 20_000)]), ANY, is_counted=True)
    sweep.add(table([make_event()]), ANY, is_counted=True)
    (rows,) = sweep.complete(None)
    assert rows["interval_start_ms"].tolist() == [START_MS + 20_000]
    assert (sweep.counted.values[READ], sweep.counted.values[FIRST]) == (4, START_MS + 10_000)


@pytest.mark.parametrize("starts", [(START_MS + 1, START_MS + 10_000), (START_MS, START_MS + 9_999)])
def test_an_event_outside_the_statistics_is_an_error(starts: tuple[int, int]) -> None:
    events = table([make_event(), make_event(at=10_000)])
    Sweep(packing(), ALL).add(events, (START_MS, START_MS + 10_000), is_counted=True)
    with pytest.raises(ValueError, match="statistics"):
        Sweep(packing(), ALL).add(events, starts, is_counted=True)
