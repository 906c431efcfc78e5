"""Debt: the debt of a connection to a bucket, for as long as the connection is muted for it."""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket

PAID_SECONDS: Final = 1e-6
"""A debt that is paid within this time counts as paid, because doubles cannot represent the difference."""


@final
class Debt:
    """Created when a wait begins, and reviewed while it lasts, because limits may change."""

    __slots__ = ("_limit", "bucket", "until", "who")

    def __init__(self, bucket: Bucket, who: Identity, until: float) -> None:
        self.bucket: Final = bucket
        self.who: Final = who
        self.until = until
        """When the debt is paid, under the limit of the last review."""
        self._limit = bucket.limit

    def review(self, now: float) -> float:
        """Return the time at which the debt is paid under the limit in force; at most `now` if there is no
        debt.

        If the limit has been raised or lowered, the rest of the wait changes in proportion, unless the
        rule bounds waits. The wait ends at the latest when the whole bucket is within its limit.
        """
        bucket = self.bucket
        limit = bucket.limit
        if limit == UNLIMITED or bucket.observed:
            self.until = now
            return now
        if limit != self._limit:
            if bucket.rule.max_throttle_seconds == UNLIMITED:
                self.until = now + max(self.until - now, 0.0) * self._limit / limit
            self._limit = limit
        self.until = min(self.until, now + bucket.wait(now))
        return self.until
