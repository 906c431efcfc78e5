"""States of buckets, as metrics and pages show them."""

from typing import Any

from proxy.quota.measure.bucket_state import BucketState


def bucket_state(quota: str, **fields: Any) -> BucketState:
    """A bucket with a limit of 5 per second and a rate of 1 per second, which throttles nobody unless
    `fields` say so.
    """
    return BucketState(**{"quota": quota, "limit": 5.0, "rate": 1.0, **fields})
