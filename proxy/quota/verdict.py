"""Verdict: how long the quotas make a client wait."""

from typing import Final, final

from proxy.quota.measure.bucket import Bucket


@final
class Verdict:
    """The wait of a client, for one request, response or connection. Immutable."""

    __slots__ = ("ahead", "ahead_seconds", "bucket", "closes", "refill_seconds", "throttle_seconds")

    def __init__(
        self,
        throttle_seconds: float = 0.0,
        bucket: Bucket | None = None,
        closes: bool = False,
        ahead_seconds: float = 0.0,
        ahead: Bucket | None = None,
        refill_seconds: float = 0.0,
    ) -> None:
        self.throttle_seconds: Final = throttle_seconds
        """How long the client waits, from the `now` of the call."""
        self.bucket: Final = bucket
        """The bucket that the verdict comes from: of several, the one with the longest wait."""
        self.closes: Final = closes
        """Whether a new connection is closed after the wait, and not served."""

        self.ahead_seconds: Final = ahead_seconds
        """The first part of the wait, for a debt that was there before: a Produce request is forwarded after
        it.
        """
        self.ahead: Final = bucket if ahead is None else ahead
        """The bucket of that debt."""
        self.refill_seconds: Final = refill_seconds
        """For request time: within how many seconds the limit refills what the request has used."""


ALLOW: Final = Verdict()
"""No wait. It is one object, so that the engine can test for it by identity."""


def combine(first: Verdict, second: Verdict) -> Verdict:
    """Combine two verdicts: the longest wait with its bucket.

    On a tie the second one's bucket counts, as in KafkaApis: it attributes the throttle time to the bandwidth
    quota only if that is longer than the request quota's, whose kind the engine asks later.
    """
    if second is ALLOW:
        return first
    if first is ALLOW:
        return second
    longest = first if first.throttle_seconds > second.throttle_seconds else second
    ahead = first if first.ahead_seconds > second.ahead_seconds else second
    return Verdict(
        longest.throttle_seconds,
        longest.bucket,
        first.closes or second.closes,
        ahead.ahead_seconds,
        ahead.ahead,
        max(first.refill_seconds, second.refill_seconds),
    )
