"""Parcels: all events of an hour arrive in one part, with what has been counted on the way."""

from collections import defaultdict
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from pipeline.schema import IDENTITY, names
from pipeline.transforms.arrays.parcels import (
    BAD,
    COUNTED,
    END,
    FIRST,
    HOUR_MS,
    PART,
    READ,
    Packing,
    Unpacked,
    chunks,
    pack,
    portions,
)
from pipeline.transforms.arrays.rows import Rows
from pipeline.transforms.duplicates import EVENT_HOUR, HOURLY, ORDER
from pipeline.window import ALWAYS, Window
from tests.support.messages.event_tables import as_table, random_events
from tests.support.messages.usage_events import START_MS, make_event

KEPT = ("bytes_in", "quota")


def packing(**changes: Any) -> Packing:
    parts = {"counts": KEPT, "window": ALWAYS, "parts": 4, "are_events": all_rows, **changes}
    return Packing(**parts)


def all_rows(rows: Rows) -> Any:
    return np.ones(len(rows), np.bool_)


def valid(rows: Rows) -> Any:
    return rows["requests"] >= 0


def packed(events: list[dict[str, Any]], how: Packing) -> Any:
    table = as_table(events)
    return pack(table.append_column(ORDER, pa.array(range(len(table)), pa.int64())), how)


def received(*batches: Any) -> tuple[list[Rows], dict[str, int | None]]:
    unpacked = Unpacked()
    for batch in batches:
        unpacked.add(batch)
    return list(unpacked.rows()), unpacked.counted.values


def values(rows: Rows, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    found = [column.to_pylist() for column in rows.values(columns, np.arange(len(rows)))]
    return list(zip(*found, strict=True))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("parts", [1, 7])
def test_what_belongs_together_arrives_together(seed: int, parts: int) -> None:
    """From several tasks, whose texts have other numbers."""
    events = random_events(Random(seed), 150)
    cuts = [events[:50], events[50:60], events[60:]]
    found, counted = received(*[packed(some, packing(parts=parts)) for some in cuts])
    assert (counted[READ], counted[BAD]) == (len(events), 0)
    columns = (*IDENTITY, *KEPT)
    arrived = [row for rows in found for row in values(rows, columns)]
    assert sorted(map(str, arrived)) == sorted(
        str(tuple(event[name] for name in columns)) for event in events
    )
    where = defaultdict(set)
    for number, rows in enumerate(found):
        assert (rows[EVENT_HOUR] == rows["interval_start_ms"] // HOUR_MS).all()
        for hour in values(rows, HOURLY):
            where[hour].add(number)
    assert all(len(numbers) == 1 for numbers in where.values())
    assert len(found) == parts


def test_a_part_is_of_whole_days() -> None:
    events = [make_event(at=hour * HOUR_MS) for hour in range(12)]
    for length, most in ((HOUR_MS, 4), (24 * HOUR_MS, 1)):
        assert packed(events, packing(period_ms=length)).num_rows == most


def test_counts_are_of_what_is_read() -> None:
    """The period is that of the events in the window, also of those that are not wanted."""
    events = [make_event(at=at) for at in (-10_000, 0, 10_000, 20_000)]
    events += [make_event(at=0, requests=-1), make_event(at=30_000)]
    window = Window(START_MS, START_MS + 30_000)
    how = packing(
        window=window, are_events=valid, are_wanted=lambda rows: rows["interval_start_ms"] < START_MS
    )
    assert received(packed(events, how)) == (
        [],
        {READ: 6, BAD: 1, FIRST: START_MS, END: START_MS + 30_000},
    )
    found, counted = received(
        packed(events[:1], how), packed(events, packing(window=window, are_events=valid))
    )
    assert counted == {READ: 7, BAD: 1, FIRST: START_MS, END: START_MS + 30_000}
    assert sum(map(len, found)) == 3


@pytest.mark.parametrize("events", [[], [make_event(requests=-1)]])
def test_nothing_is_a_parcel_with_counts(events: list[dict[str, Any]]) -> None:
    batch = packed(events, packing(are_events=valid))
    assert batch.column(PART).to_pylist() == [0]
    nothing = {READ: len(events), BAD: len(events), FIRST: None, END: None}
    assert received(batch) == ([], nothing)
    assert received() == ([], dict.fromkeys(names(COUNTED)))


def test_batches_are_joined_up_to_a_number_of_rows() -> None:
    batches = [pa.record_batch({"a": pa.array(range(size), pa.int64())}) for size in (3, 0, 4, 9, 1)]
    assert [len(table) for table in chunks(batches, 5)] == [7, 9, 1]
    assert list(chunks([], 5)) == []


def test_a_large_part_is_divided() -> None:
    """The events of a place stay together."""
    ((rows,), _) = received(packed(random_events(Random(1), 300), packing(parts=1)))
    places = HOURLY[1:]
    found = [values(some, places) for some in portions(rows, 100)]
    assert len(found) > 2
    assert sorted(map(str, values(rows, places))) == sorted(str(row) for some in found for row in some)
    assert sum(len(set(some)) for some in found) == len(set(values(rows, places)))
    (whole,) = portions(rows, 1000)
    assert whole is rows
