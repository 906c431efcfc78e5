"""Tables of sums from rows of Spark: each event once, with counts of what was read."""

from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.transforms.arrays.parcels import BAD, END, FIRST, READ
from pipeline.transforms.arrays.summing import summed, table_of
from pipeline.transforms.tenants import SUMS, TENANT
from pipeline.window import Window
from tests.support.messages.event_tables import as_table, first_of, random_events
from tests.support.messages.usage_events import START_MS, make_event


def counted(found: DataFrame) -> tuple[int | None, ...]:
    (row,) = found.agg(F.sum(READ), F.sum(BAD), F.min(FIRST), F.max(END)).collect()
    return tuple(row)


def test_events_of_the_window_count_once(spark: SparkSession) -> None:
    """From several tasks, and in parts of several tasks."""
    window = Window(START_MS, START_MS + 60_000 * 90)
    events = random_events(Random(0), 300)
    rows = spark.createDataFrame(as_table([*events, make_event(requests=-1)]))
    reason = F.when(F.col("requests") < 0, "negative")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        found = summed(rows.withColumn("reason", reason), SUMS, window).cache()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
    within = [event for event in events if event["interval_start_ms"] < (window.end_ms or 0)]
    starts = [event["interval_start_ms"] for event in within]
    ends = [event["interval_start_ms"] + event["interval_ms"] for event in within]
    assert counted(found) == (len(events) + 1, 1, min(starts), max(ends))
    table = table_of(found, SUMS)
    assert table.columns == SUMS.columns.names
    assert len({tuple(row[name] for name in TENANT) for row in table.collect()}) < table.count()
    (requests,) = table.agg(F.sum("requests")).collect()[0]
    assert requests == sum(event["requests"] for event in first_of(within))
    found.unpersist()


def test_nothing_is_read(spark: SparkSession) -> None:
    found = summed(spark.createDataFrame(as_table([])), SUMS)
    assert counted(found) in ((0, 0, None, None), (None, None, None, None))
    assert table_of(found, SUMS).collect() == []
