"""The rows of /api/quotas, and their sums over workers."""

from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.quota_rows import merged_rows, quota_row


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
