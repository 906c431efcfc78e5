"""What tenants used, compared with sums of another program's making."""

from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.transforms.tenants import TENANT, tenants
from tests.support.messages.event_tables import as_table, first_of, random_events
from tests.support.messages.usage_events import HOUR_MS, make_event

SUMMED = ("bytes_in", "bytes_out", "requests")


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_random_events(spark: SparkSession, seed: int) -> None:
    """With duplicates, contradictions, and places without a topic or a partition."""
    events = random_events(Random(seed), 300)
    sums: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    hours = defaultdict(set)
    for event in first_of(events):
        tenant = tuple(event[name] for name in TENANT)
        sums[tenant] = [
            sum(pair) for pair in zip(sums[tenant], (event[name] for name in SUMMED), strict=True)
        ]
        place = (event["topic"], event["partition"], event["interval_start_ms"] // HOUR_MS)
        if None not in place:
            hours[tenant].add(place)
    found = tenants(spark.createDataFrame(as_table(events)).coalesce(1)).collect()
    assert {tuple(row) for row in found} == {
        (*tenant, *counts, len(hours[tenant])) for tenant, counts in sums.items()
    }
    assert len(found) == len(sums)


def test_a_partition_that_moves_is_used_for_one_hour(frame: Callable[..., DataFrame]) -> None:
    (row,) = tenants(frame(make_event(), make_event(broker=2), make_event(at=HOUR_MS))).collect()
    assert row.partition_hours == 2
