"""Verdict: what the quotas say about one request."""

from typing import Final, final

from proxy.quota.measure.bucket import Bucket

NO_BOUND: Final = -1


@final
class Verdict:
    """A wait, a bound, or both; immutable."""

    __slots__ = ("bucket", "max_bytes", "throttle_seconds")

    def __init__(
        self,
        throttle_seconds: float = 0.0,
        max_bytes: int = NO_BOUND,
        bucket: Bucket | None = None,
    ) -> None:
        self.throttle_seconds: Final = throttle_seconds
        """How long the client has to wait, from the `now` of the call on."""
        self.max_bytes: Final = max_bytes
        """The most that the response may bring; NO_BOUND where no quota bounds it."""
        self.bucket: Final = bucket
        """The bucket that the verdict comes from: of several, the one that makes the wait."""


ALLOW: Final = Verdict()
"""Go ahead. Every request without a limit gets this one object."""


def combine(first: Verdict, second: Verdict) -> Verdict:
    """Both: the longest wait and its bucket, the least max_bytes.

    On a tie it is the second's bucket: Kafka counts a wait for the bandwidth only where it is longer than
    the one for the requests, which is asked later.
    """
    if second is ALLOW:
        return first
    if first is ALLOW:
        return second
    longest = first if first.throttle_seconds > second.throttle_seconds else second
    return Verdict(
        longest.throttle_seconds,
        _least(first.max_bytes, second.max_bytes),
        longest.bucket,
    )


def _least(first: int, second: int) -> int:
    if first == NO_BOUND:
        return second
    if second == NO_BOUND:
        return first
    return min(first, second)
