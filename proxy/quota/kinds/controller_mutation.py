"""Partitions created and deleted per second by a user, a client id, or both, over all brokers (KIP-599).

    tokens refill at Q per second up to Q x samples x window; admitted while tokens >= 0; wait = -tokens / Q
    (Kafka's TokenBucket and ControllerMutationQuotaManager)

CreateTopics and CreatePartitions take a token for each new partition, DeleteTopics for each partition of the
topic. An admitted topic takes all of its tokens, so they may fall far below zero; then no topic is admitted
until they are at zero again. Older versions of these requests have no error code for this: they wait until
the tokens are at zero, and then every topic is admitted, and the client is throttled (Kafka's permissive
quota, which throttles only the connection of an earlier request).

Brokers also create topics that a Metadata request asks for (auto.create.topics.enable). Each takes
num.partitions tokens; a topic that is not admitted remains unknown to the client. And brokers create the
internal topics of streams groups (KIP-1071), which take their partitions' tokens. The heartbeat that creates
them waits until the tokens are at zero.

Any broker accepts these requests and forwards them to the controller, so an entity has one bucket for all
brokers. Engines do not call this quota: the proxy's handlers of the requests (admin/mutations) charge it
topic by topic, because topics that the broker rejects cost nothing.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.buckets import Buckets
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.quota import DOUBLE, PER_CLUSTER, Quota, QuotaKey, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    METADATA,
    STREAMS_GROUP_HEARTBEAT,
)

API_KEYS: Final = (CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS)
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"


@final
class ControllerMutation(Quota):
    """The mutations of all clients."""

    def __init__(self) -> None:
        super().__init__(API_KEYS, intercepts=True, limited_api_keys=(METADATA, STREAMS_GROUP_HEARTBEAT))
        limits = Limits({})
        self._limits = limits
        self._buckets: Final = Buckets(CONTROLLER_MUTATION_RATE, limits, _rule(limits), forgets_debts=True)
        self._review_seconds = UNLIMITED
        self.configure(limits, 0.0)

    def bucket(self, who: Identity, now: float) -> Bucket | None:
        """The bucket of a client; None if it has no limit."""
        return None if self._limits.settings.exemptions.exempt(who) else self._buckets.find(who, now)

    def limits(self, who: Identity, now: float) -> bool:
        return self.bucket(who, now) is not None

    def charge_strict(
        self, bucket: Bucket, permits: int, now: float, who: Identity | None = None, api_key: int = -1
    ) -> bool:
        """Take tokens and return True; if they are below zero, take none and return False."""
        tokens = bucket.tokens
        if tokens is not None and not bucket.observed and tokens.measure(now) < 0.0:
            bucket.last_used = now
            return False
        self.charge_permissive(bucket, permits, now, who, api_key)
        return True

    def charge_permissive(
        self, bucket: Bucket, permits: int, now: float, who: Identity | None = None, api_key: int = -1
    ) -> None:
        """Take tokens. If the bucket is observed, the wait is counted, for `who` as well."""
        seconds = bucket.record(float(permits), now)
        if bucket.observed and seconds > 0.0:
            _count_usage(bucket, bucket.count_observed(seconds, now), who, api_key)

    def give_back(self, bucket: Bucket, permits: int, now: float) -> None:
        """Return the tokens of partitions that were not created or deleted."""
        bucket.record(-float(permits), now)

    def throttle(self, bucket: Bucket, now: float, who: Identity | None = None, api_key: int = -1) -> Verdict:
        """Throttle a client until the tokens are at zero."""
        tokens = bucket.tokens
        if tokens is None or bucket.observed:
            return ALLOW
        seconds = tokens.throttle_seconds(bucket.limit, now)
        if seconds <= 0.0:
            return ALLOW
        bucket.count_throttle(seconds, 1, now + seconds)
        _count_usage(bucket, seconds, who, api_key)
        return Verdict(seconds, bucket)

    def announced(self, verdict: Verdict) -> float:
        """How many seconds of a wait the client is told: all, as in Kafka, unless processes share limits."""
        return min(verdict.throttle_seconds, self._review_seconds)

    def review_every(self, seconds: float) -> None:
        self._review_seconds = seconds

    def configure(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._buckets.configure(limits, _rule(limits), now)
        self.active = self._buckets.any

    def begin_with(self, first_parts: FirstParts) -> None:
        self._buckets.first_parts = first_parts

    def live(self) -> list[Bucket]:
        return self._buckets.live()

    def forget_idle(self, now: float) -> bool:
        return self._buckets.forget_idle(now)


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
    keys=(
        QuotaKey(
            CONTROLLER_MUTATION_RATE,
            DOUBLE,
            help="Partitions per second that a user, a client id or both may create or delete in a cluster.",
        ),
    ),
    scope=PER_CLUSTER,
    build=ControllerMutation,
)
