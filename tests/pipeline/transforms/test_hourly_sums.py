"""Sums by hour, of which only events with the hash of another one are compared."""

from collections.abc import Callable

from pyspark.sql import DataFrame

from pipeline.transforms.duplicates import CONTRADICTED, deduplicate
from pipeline.transforms.hourly_sums import SUMMED, doubted, hourly_sums, with_identity_hash
from pipeline.transforms.totals import total
from tests.support.messages.usage_events import HOUR_MS, make_event

Frame = Callable[..., DataFrame]
PLACE = ("cluster", "user", "client_id", "topic", "partition", "event_hour")


def summed(table: DataFrame) -> list[str]:
    sums = table.groupBy(*PLACE).agg(*[total(name).alias(name) for name in SUMMED])
    return sorted(map(str, sums.collect()))


def test_an_event_counts_once_in_its_hour(frame: Frame) -> None:
    """As if all events were compared. Two of the events contradict the first one of their identity."""
    nothing = make_event(topic=None, partition=None, bytes_in=1)
    events = [
        *[make_event(), make_event(), make_event(api="Fetch", bytes_in=10), make_event(proxy="proxy-2")],
        *[make_event(at=HOUR_MS), make_event(broker=2), nothing, nothing],
        *[
            make_event(user="b", bytes_in=5),
            make_event(user="b", bytes_in=7),
            make_event(user="b", quota="x"),
        ],
    ]
    read = frame(*events).repartition(1)
    doubts = doubted(with_identity_hash(read))
    assert doubts.count() == 3
    found, expected = hourly_sums(read, doubts), deduplicate(read)
    assert summed(found) == summed(expected)
    assert found.where(CONTRADICTED).count() == expected.where(CONTRADICTED).count() == 1


def test_an_event_with_the_hash_of_another_one_counts(frame: Frame) -> None:
    """Every event is in doubt here, and so compared as it is."""
    read = frame(make_event(), make_event(partition=1), make_event(at=10_000), make_event(topic=None))
    every = with_identity_hash(read).selectExpr("identity_hash", "true AS is_doubted")
    assert summed(hourly_sums(read, every)) == summed(deduplicate(read))
