"""BucketState: the values that may be missing; test_bucket.py has those that a bucket gives."""

from proxy.quota.limits.enforcement import ENFORCE
from proxy.quota.measure.bucket_state import BucketState
from proxy.wire.cursor import NO_PARTITION


def test_a_quota_that_is_not_shared_may_be_used_whole() -> None:
    assert BucketState(quota="q", limit=10.0, rate=0.0).share == 10.0
    assert BucketState(quota="q", limit=10.0, rate=0.0, share=0.0).share == 0.0


def test_what_a_bucket_does_not_have() -> None:
    state = BucketState(quota="q", limit=10.0, rate=0.0)
    assert (state.user, state.client_id, state.ip, state.topic, state.partition) == (
        "",
        "",
        "",
        "",
        NO_PARTITION,
    )
    assert (state.tokens, state.mode, state.throttled_until) == (None, ENFORCE, 0.0)
