"""Bytes per second of a user, a client id, or both, on each broker (KIP-13, KIP-55, KIP-219).

    pace      tokens refill at Q per second up to burst_seconds x Q; wait = -tokens / Q where one connection
              uses the bucket; several get equal parts of what refills (FairShare)
    window    wait = (rate - Q) / Q x window, Kafka's own (rate: SampledRate)

producer_byte_rate charges a Produce request's frame, once, as it is read: a client that waits as told starts
its next request without a debt, or with little of one where others have come meanwhile. consumer_byte_rate
charges the response of a consumer's Fetch and of ShareFetch: four bytes and the body, as Kafka counts. A
breach makes the client wait; nothing is rejected. A consumer's request is bounded as well, so that one
response cannot take it seconds over. Followers' fetches pass: they have quotas of their own (KIP-73).
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket, byte_rate_rule
from proxy.quota.measure.buckets import Buckets
from proxy.quota.quota import LONG, PER_BROKER, Quota, QuotaKey, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import FETCH, PRODUCE, SHARE_FETCH
from proxy.wire.views import RequestView, ResponseView

API_KEYS: Final = (PRODUCE, FETCH, SHARE_FETCH)

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"

_SIZE_FIELD: Final = 4
"""Kafka's fetch quota counts a response with its four-byte length, the header left out."""
_LEAST_FETCH_SECONDS: Final = 0.25
"""What a paced consumer without tokens may still ask for: four responses a second, not a trickle."""


@final
class ClientBytes(Quota):
    """The byte rates of one broker's clients."""

    def __init__(self) -> None:
        super().__init__(API_KEYS)
        limits = Limits({})
        self._window_seconds = 0.0
        self._produced: Final = Buckets(
            PRODUCER_BYTE_RATE, limits, byte_rate_rule(limits, PRODUCER_BYTE_RATE)
        )
        self._consumed: Final = Buckets(
            CONSUMER_BYTE_RATE, limits, byte_rate_rule(limits, CONSUMER_BYTE_RATE)
        )
        self.configure(limits, 0.0)

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        if request.api_key == PRODUCE:
            bucket = self._produced.find(who, now)
            return ALLOW if bucket is None else _use(bucket, request.size, who, now)
        if request.replica_id >= 0:
            return ALLOW
        bucket = self._consumed.find(who, now)
        if bucket is None:
            return ALLOW
        most = self._most(bucket, now)
        if 0 <= request.max_bytes <= most:
            return ALLOW
        return Verdict(max_bytes=most, bucket=bucket)

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        if request.api_key == PRODUCE or request.replica_id >= 0:
            return ALLOW
        bucket = self._consumed.find(who, now)
        return ALLOW if bucket is None else _use(bucket, response.body_size + _SIZE_FIELD, who, now)

    def _most(self, bucket: Bucket, now: float) -> int:
        """The most that a response may bring: what the tokens allow, or Kafka's whole window (KAFKA-9677).

        At least 1: a broker returns one batch however small the bound, so a consumer always gets on.
        """
        tokens = bucket.tokens
        if tokens is None:
            return max(int(bucket.limit * self._window_seconds), 1)
        return max(int(max(tokens.measure(now), bucket.limit * _LEAST_FETCH_SECONDS)), 1)

    def configure(self, limits: Limits, now: float) -> None:
        self._window_seconds = limits.settings.algorithm.window.burst_seconds
        self._produced.configure(limits, byte_rate_rule(limits, PRODUCER_BYTE_RATE), now)
        self._consumed.configure(limits, byte_rate_rule(limits, CONSUMER_BYTE_RATE), now)
        self.active = self._produced.any or self._consumed.any

    def live(self) -> list[Bucket]:
        return self._produced.live() + self._consumed.live()

    def forget_idle(self, now: float) -> None:
        self._produced.forget_idle(now)
        self._consumed.forget_idle(now)


def _use(bucket: Bucket, size: int, who: Identity, now: float) -> Verdict:
    seconds = bucket.record(size, now, who)
    return ALLOW if seconds <= 0.0 else Verdict(seconds, bucket=bucket)


KIND: Final = QuotaKind(
    name="client_bytes",
    keys=(QuotaKey(PRODUCER_BYTE_RATE, LONG), QuotaKey(CONSUMER_BYTE_RATE, LONG)),
    api_keys=API_KEYS,
    scope=PER_BROKER,
    build=ClientBytes,
    help="Bytes per second that a user, a client id or both may produce and consume on each broker.",
)
