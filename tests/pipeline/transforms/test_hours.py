"""Sums and rates of hours: what belongs together, and which event counts."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame

from pipeline.transforms.arrays.rows import constant
from pipeline.transforms.duplicates import CONTRADICTED
from pipeline.transforms.hours import _rates_in_order, hours
from tests.support.messages.usage_events import HOUR_MS, make_event

Frame = Callable[..., DataFrame]


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


@pytest.mark.parametrize("most", [9, 1 << 62])
def test_rates_are_sorted_by_hour(most: int) -> None:
    """In the same order, whether all intervals are equally long or not."""
    source = Random(most)
    counts = np.array([source.randrange(most) for _ in range(3000)])
    begins = np.array([0, 1, 1000, 1001, 2500])
    lengths = constant(10_000, len(counts))
    found = _rates_in_order(counts, lengths, begins)
    expected = [np.sort(hour * 1000.0 / 10_000) for hour in np.split(counts, begins[1:])]
    assert found.tolist() == np.concatenate(expected).tolist()
    assert _rates_in_order(counts, lengths.copy(), begins).tolist() == found.tolist()
