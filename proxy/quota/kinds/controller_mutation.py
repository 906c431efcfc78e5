"""Partitions created and deleted per second by a user, a client id, or both, over all brokers (KIP-599).

    tokens refill at Q per second up to Q x samples x window; admitted while tokens >= 0; wait = -tokens / Q

CreateTopics and CreatePartitions take a token for each new partition, DeleteTopics for each partition of the
topic. What is admitted takes all of its tokens, so they may fall far below zero; nothing more is admitted
until they are back. Older versions of these requests cannot say that a topic was not admitted: there every
topic is, and the client waits (permissive recording).

Any broker takes these requests and hands them on to the controller, so an entity has one bucket for all of
them. Engines do not ask this quota: whoever answers the requests asks it topic by topic, since a broker may
reject a topic, which then costs nothing.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket, RateRule
from proxy.quota.measure.buckets import Buckets
from proxy.quota.quota import DOUBLE, PER_CLUSTER, Quota, QuotaKey, QuotaKind
from proxy.wire.api_keys import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS

API_KEYS: Final = (CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS)
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"


@final
class ControllerMutation(Quota):
    """The mutations of all clients."""

    def __init__(self) -> None:
        super().__init__(API_KEYS, intercepts=True)
        limits = Limits({})
        self._limits = limits
        self._buckets: Final = Buckets(CONTROLLER_MUTATION_RATE, limits, _rule(limits))
        self.configure(limits, 0.0)

    def bucket(self, who: Identity, now: float) -> Bucket | None:
        """The bucket that holds for a client; None where no quota does."""
        return None if self._limits.settings.exemptions.exempt(who) else self._buckets.find(who, now)

    def charge_strict(
        self, bucket: Bucket, permits: int, now: float, who: Identity | None = None, api_key: int = -1
    ) -> bool:
        """Take so many tokens, unless they are below zero: then take none, and return False."""
        tokens = bucket.tokens
        if tokens is not None and not bucket.observed and tokens.measure(now) < 0.0:
            bucket.last_used = now
            return False
        self.charge_permissive(bucket, permits, now, who, api_key)
        return True

    def charge_permissive(
        self, bucket: Bucket, permits: int, now: float, who: Identity | None = None, api_key: int = -1
    ) -> None:
        """Take so many tokens. Where the bucket is only observed, the wait is counted as `who`'s too."""
        seconds = bucket.record(float(permits), now)
        if bucket.observed and seconds > 0.0:
            _count_usage(bucket, bucket.count_observed(seconds, now), who, api_key)

    def give_back(self, bucket: Bucket, permits: int, now: float) -> None:
        """What was charged for did not come to be."""
        bucket.record(-float(permits), now)

    def throttle(self, bucket: Bucket, now: float, who: Identity | None = None, api_key: int = -1) -> float:
        """How long a client waits that is made to: until the tokens are back at zero, in seconds."""
        tokens = bucket.tokens
        if tokens is None or bucket.observed:
            return 0.0
        seconds = tokens.throttle_seconds(bucket.limit, now)
        if seconds > 0.0:
            bucket.count_throttle(seconds, 1, now + seconds)
            _count_usage(bucket, seconds, who, api_key)
        return seconds

    def configure(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._buckets.configure(limits, _rule(limits), now)
        self.active = self._buckets.any

    def live(self) -> list[Bucket]:
        return self._buckets.live()

    def forget_idle(self, now: float) -> None:
        self._buckets.forget_idle(now)


def _count_usage(bucket: Bucket, seconds: float, who: Identity | None, api_key: int) -> None:
    if who is not None and who.usage is not None:
        who.usage.count_throttle(api_key, bucket.quota, seconds, 1)


def _rule(limits: Limits) -> RateRule:
    window = limits.settings.controller_window
    return RateRule(
        window=window,
        burst_seconds=window.total_seconds,
        mode=limits.mode(CONTROLLER_MUTATION_RATE),
    )


KIND: Final = QuotaKind(
    name="controller_mutation",
    keys=(QuotaKey(CONTROLLER_MUTATION_RATE, DOUBLE),),
    api_keys=API_KEYS,
    scope=PER_CLUSTER,
    build=ControllerMutation,
    help="Partitions that a user, a client id or both may create and delete per second in the cluster.",
)
