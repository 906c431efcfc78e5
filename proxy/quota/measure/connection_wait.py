"""ConnectionWait: the wait of a new connection for its turn under a connection rate."""

from typing import Final, final

from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket

REVIEW_SECONDS: Final = 1.0
"""Seconds between reviews of a wait: its limit may have been raised or removed."""


@final
class ConnectionWait:
    """Created when the wait begins, and reviewed while it lasts, because limits may change.

    It compares whole limits. This process's part of a limit is no measure: it grows while connections wait,
    and the wait has been computed for this growth.
    """

    __slots__ = ("_bucket", "_limit", "until", "wake_at")

    def __init__(self, until: float, now: float, bucket: Bucket | None = None) -> None:
        """`bucket` is None if the end of the wait does not change."""
        self._bucket: Final = bucket
        self._limit = 0.0 if bucket is None else bucket.whole_limit
        """The highest limit so far, which `until` is for."""
        self.until = until
        """When the connection is served, under the limit of the last review."""
        self.wake_at = until
        """When review() is due."""
        self._set(now)

    def review(self, now: float) -> bool:
        """Return whether the wait is over under the limit in force; called when it is due.

        If the limit has been raised, the rest becomes shorter in proportion. If it has been lowered, the
        connection keeps its turn.
        """
        # A timer may be early by the resolution of its clock.
        now = max(now, self.wake_at)
        bucket = self._bucket
        if bucket is not None:
            limit = bucket.whole_limit
            if limit == UNLIMITED or bucket.observed:
                self.until = min(self.until, now)
            elif limit > self._limit:
                self.until = now + max(self.until - now, 0.0) * self._limit / limit
                self._limit = limit
        self._set(now)
        return self.until <= now

    def _set(self, now: float) -> None:
        self.wake_at = self.until if self._bucket is None else min(self.until, now + REVIEW_SECONDS)
