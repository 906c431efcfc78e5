"""Sums and rates of hours: what belongs together, and which event counts."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from pipeline.transforms.duplicates import CONTRADICTED
from pipeline.transforms.hours import hours
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
