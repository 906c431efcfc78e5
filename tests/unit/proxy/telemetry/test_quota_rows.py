"""The rows of /api/quotas, and their sums over workers."""

import pytest

from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.quota_rows import Row, merged_rows, quota_row


def state(user: str, rate: float, throttled_until: float = 0.0) -> BucketState:
    return BucketState(
        quota="producer_byte_rate",
        user=user,
        limit=100.0,
        rate=rate,
        share=rate,
        throttled_until=throttled_until,
        throttled_requests=1,
        throttle_seconds=0.5,
    )


def test_a_bucket_of_several_workers_is_one_row() -> None:
    one = [quota_row(1, state("a", 40.0), 5.0), quota_row(2, state("a", 1.0), 5.0)]
    other = [quota_row(1, state("a", 60.0, throttled_until=6.0), 5.0), quota_row(1, state("b", 7.0), 5.0)]
    first, second, third = merged_rows([one, other])
    assert (first["limit"], first["rate"], first["share"]) == (100.0, 100.0, 100.0)
    assert (first["throttled"], first["throttled_requests"], first["throttle_seconds"]) == (True, 2, 1.0)
    assert (second["broker"], second["rate"]) == (2, 1.0)
    assert (third["entity"], third["rate"]) == ({"user": "b"}, 7.0)
    assert one[0]["rate"] == 40.0


def throttle(limit: float, behind: int, inbound: float, since: float | None) -> Row:
    """A row of a replication throttle; see telemetry.replication."""
    row = quota_row(2, state("", 30.0), 5.0) | {"kind": "follower.replication.throttled.rate", "limit": limit}
    return row | {
        "since_seconds": since,
        "replicas_behind": behind,
        "lag": 10 * behind,
        "inbound_rate": inbound,
        "too_low": behind > 0 and limit <= inbound,
    }


@pytest.mark.parametrize(("limit", "too_low"), [(100.0, True), (120.0, False)])
def test_a_replication_throttle_of_several_workers_is_one_row(limit: float, too_low: bool) -> None:
    """Their partitions grow faster than the throttle together, and not at one worker alone."""
    of_workers = [
        throttle(limit, behind=0, inbound=50.0, since=None),
        throttle(limit, behind=1, inbound=30.0, since=3.0),
        throttle(limit, behind=2, inbound=30.0, since=7.0),
    ]
    (row,) = merged_rows([each] for each in of_workers)
    assert (row["replicas_behind"], row["lag"], row["inbound_rate"]) == (3, 30, 110.0)
    assert (row["since_seconds"], row["too_low"]) == (7.0, too_low)


def test_a_replication_throttle_without_replicas_behind_has_no_time() -> None:
    (row,) = merged_rows([throttle(100.0, behind=0, inbound=90.0, since=None)] for _ in range(2))
    assert (row["since_seconds"], row["too_low"]) == (None, False)
