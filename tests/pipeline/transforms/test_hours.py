"""Sums and rates of hours: what belongs together, and which event counts."""

from collections.abc import Callable, Iterator
from itertools import chain, groupby
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame

from pipeline.transforms.duplicates import CONTRADICTED, HOURLY_HASH, deduplicate
from pipeline.transforms.hours import hours, whole_hours
from tests.support.messages.usage_events import HOUR_MS, make_event

Frame = Callable[..., DataFrame]


def batches(*hashes: list[int]) -> Iterator[Any]:
    for each in hashes:
        yield pa.record_batch({HOURLY_HASH: pa.array(each, pa.int64())})


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 100])
def test_an_hour_is_not_cut(rows: int) -> None:
    parts: list[list[int]] = [[-9, -9, 1], [1], [], [1, 1], [1, 4], [4], [5], [6, 7]]
    found = [table.column(0).to_pylist() for table in whole_hours(batches(*parts), rows)]
    assert [*chain(*found)] == [*chain(*parts)]
    assert all(len(table) >= rows for table in found[:-1])
    assert len(found) == 1 or rows < 100
    seen = [number for table in found for number, _ in groupby(table)]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("parts", [([2, 1],), ([1, 2], [1])])
def test_unsorted_hours_are_an_error(parts: tuple[list[int], ...]) -> None:
    with pytest.raises(ValueError, match="not sorted"):
        list(whole_hours(batches(*parts)))


@pytest.mark.parametrize("by", ["hour", "day"])
def test_the_first_of_several_events_counts(frame: Frame, by: str) -> None:
    """Of each sender and each interval; another topic, or none, is another place."""
    places: list[dict[str, Any]] = [
        {},
        {"topic": ""},
        {"topic": None, "partition": None},
        {"partition": None},
    ]
    senders: list[dict[str, Any]] = [
        {},
        {"proxy": "proxy-2"},
        {"listener": "b"},
        {"api": "Fetch"},
        {"at": 10_000},
        {"broker": 9},
    ]
    first = [make_event(**place, **sender, bytes_in=5) for place in places for sender in senders]
    again = [*first, *[{**event, "bytes_in": 7} for event in first[:3]]]
    both = frame(*first, *again, make_event(at=HOUR_MS)).coalesce(1)
    rows = [row.asDict() for row in hours(both, by).collect()]
    assert len(rows) == 2 * len(places) + (by == "hour")
    assert sum(row["bytes_in"] for row in rows) == 5 * len(first) + 1000
    contradicted = [row for row in rows if row[CONTRADICTED]]
    assert [(row["topic"], row["partition"], row["broker"]) for row in contradicted] == [("orders", 0, 1)]


def test_the_events_of_other_tables_are_not_sorted_again(
    frame: Frame, capsys: pytest.CaptureFixture[str]
) -> None:
    unique = deduplicate(frame(make_event(), make_event()), by_hour=True)
    assert [row.requests for row in hours(unique).collect()] == [10]
    for events, shuffles in ((unique, 1), (frame(make_event()), 1)):
        hours(events).explain()
        assert capsys.readouterr().out.count("Exchange ") == shuffles
