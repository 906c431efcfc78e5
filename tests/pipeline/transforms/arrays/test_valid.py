"""Which rows are events: in arrays by the same rules as in Spark's plans."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.schema import COUNTS, EVENT
from pipeline.transforms.arrays.rows import from_arrow
from pipeline.transforms.arrays.valid import Range, all_are_events, are_events
from pipeline.transforms.duplicates import PLACE
from pipeline.transforms.events import EARLIEST_START_MS, LONGEST_INTERVAL_MS, checked_rows, latest_ms
from tests.support.messages.event_tables import as_table
from tests.support.messages.usage_events import make_event

BOUNDS = {
    "v": (1, 1),
    "broker": (-(1 << 31), (1 << 31) - 1),
    "interval_ms": (1, LONGEST_INTERVAL_MS),
    "interval_start_ms": (EARLIEST_START_MS, EARLIEST_START_MS + (1 << 38)),
    "partition": (0, (1 << 31) - 1),
    **dict.fromkeys(COUNTS, (0, 1 << 53)),
}


def odd() -> Iterator[dict[str, Any]]:
    """Events with the values at the bounds of each field, and beyond, and nulls."""
    yield make_event()
    for field in EVENT.fields:
        yield {**make_event(), field.name: None}
        if field.name not in BOUNDS:
            yield {**make_event(), field.name: ""}
            continue
        low, high = BOUNDS[field.name]
        most = (1 << 63 if field.dataType.simpleString() == "bigint" else 1 << 31) - 1
        for value in (low, low - 1, 0, -1, high, high + 1, most, -most - 1):
            if -most - 1 <= value <= most:
                yield {**make_event(), field.name: value}
    yield dict.fromkeys(EVENT.names)


def test_the_rules_are_those_of_the_plans(spark: SparkSession) -> None:
    table = as_table(odd())
    found = are_events(from_arrow(table), latest_ms()).tolist()
    checked = checked_rows(spark.createDataFrame(table).withColumn(PLACE, F.lit(0)).coalesce(1))
    assert found == [row.reason is None for row in checked.select("reason").collect()]
    assert {True, False} == set(found)


def test_the_latest_time_is_that_of_the_caller() -> None:
    rows = from_arrow(as_table([make_event(interval_start_ms=EARLIEST_START_MS + 9)]))
    for latest, is_one in ((8, False), (9, True)):
        assert are_events(rows, EARLIEST_START_MS + latest).tolist() == [is_one]


def ranges(*events: dict[str, Any]) -> dict[str, Range]:
    """The statistics of these rows."""
    found = {}
    for name in EVENT.names:
        known = [event[name] for event in events if event[name] is not None]
        low, high = (min(known), max(known)) if known else (None, None)
        found[name] = Range(low, high, len(events) - len(known), len(known))
    return found


def test_statistics_prove_what_the_rows_are() -> None:
    """Of one row, they tell all; those of several rows show that one of them is no event."""
    latest = latest_ms()
    for event in odd():
        is_event = bool(are_events(from_arrow(as_table([event])), latest)[0])
        assert all_are_events(ranges(event), latest) == is_event
        assert all_are_events(ranges(make_event(), event, make_event()), latest) == is_event


def test_statistics_that_lack_something_prove_nothing() -> None:
    known = ranges(make_event(topic=None, quota=None))
    assert all_are_events(known, latest_ms())
    for field in EVENT.fields:
        lacking = all_are_events({**known, field.name: Range(None, None, None, None)}, latest_ms())
        assert lacking == (field.name in ("topic", "quota"))
