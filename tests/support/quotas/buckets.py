"""Buckets of engines, and their states as metrics and pages show them."""

from typing import Any

from proxy.quota.engine import QuotaEngine
from proxy.quota.engines import QuotaEngines
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.bucket_state import BucketState


def live_buckets(engine: QuotaEngine) -> list[Bucket]:
    """Every bucket that has been used and has a limit."""
    return [bucket for quota in engine.active for bucket in quota.live()]


def live_by_node(engines: QuotaEngines) -> list[tuple[int, Bucket]]:
    """Every live bucket with its broker's node id, in the order of active()."""
    return [(node_id, bucket) for node_id, quota in engines.active() for bucket in quota.live()]


def bucket_states(engine: QuotaEngine, now: float) -> list[BucketState]:
    """The state of every live bucket."""
    return [bucket.state(now) for bucket in live_buckets(engine)]


def bucket_state(quota: str, **fields: Any) -> BucketState:
    """A bucket with a limit of 5 per second and a rate of 1 per second, which throttles nobody unless
    `fields` say so.
    """
    return BucketState(**{"quota": quota, "limit": 5.0, "rate": 1.0, **fields})
