"""Throttle: only hours in which a quota bound the tenant."""

from collections.abc import Callable

from pyspark.sql import DataFrame

from pipeline.schema import THROTTLE
from pipeline.transforms.throttle import throttle
from tests.support.messages.usage_events import HOUR_MS, make_event


def test_sums_by_tenant_quota_and_hour(frame: Callable[..., DataFrame]) -> None:
    bound = {"throttled_requests": 2, "throttle_ms": 300, "quota": "producer_byte_rate"}
    table = throttle(
        frame(
            make_event(**bound),
            make_event(**bound, at=10_000, partition=1),
            make_event(**bound, at=HOUR_MS),
            make_event(**{**bound, "quota": "request_percentage"}, api="Metadata"),
            make_event(user="bob", rejected_requests=1, rejected_bytes=77, quota="broker_bytes_in"),
            make_event(
                user="bob", rejected_requests=1, rejected_bytes=5, quota="broker_bytes_in", cluster="b"
            ),
            make_event(user="carol"),
        )
    )
    assert table.columns == THROTTLE.names
    assert sorted(
        (row.cluster, row.user, row.quota, row.hour.hour, *tuple(row)[5:]) for row in table.collect()
    ) == [
        ("b", "bob", "broker_bytes_in", 12, 0, 0, 1, 5),
        ("local", "alice", "producer_byte_rate", 12, 4, 600, 0, 0),
        ("local", "alice", "producer_byte_rate", 13, 2, 300, 0, 0),
        ("local", "alice", "request_percentage", 12, 2, 300, 0, 0),
        ("local", "bob", "broker_bytes_in", 12, 0, 0, 1, 77),
    ]
