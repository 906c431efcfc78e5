"""Bytes per second of a user, a client id, or both, on each broker (KIP-13, KIP-55, KIP-219).

    pace      tokens refill at Q per second up to burst_seconds x Q; wait = -tokens / Q (TokenBucket). If
              several connections use a bucket, they get equal parts of the refill (FairShare).
    window    wait = (rate - Q) / Q x window, as in Kafka (SampledRate, QuotaUtils.boundedThrottleTime). A
              consumer gets a batch even if the batch exceeds the limit; Kafka withholds it. Bytes beyond a
              window's worth of tokens are paid in whole (RateRule.repays).

producer_byte_rate charges the frame of a Produce request when it is read. consumer_byte_rate charges the
response to a consumer's Fetch and to ShareFetch: the body and four bytes, as Kafka does. A client over its
quota is throttled; nothing is rejected. A consumer's max_bytes is bounded too, so that one response cannot
put the client seconds over its quota, and a fetch is forwarded only when the bucket has tokens for it
(proxy.quota.fetch.grant). The fetches of followers are not charged: replication quotas apply to
them.
"""

from typing import Final, final

from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import LONG
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.buckets import Buckets
from proxy.quota.measure.rate_rule import byte_rate_rule
from proxy.quota.quota import PER_BROKER, Quota, QuotaKey, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import FETCH, PRODUCE, SHARE_FETCH
from proxy.wire.views import WITHHELD, Item, RequestView, ResponseView

API_KEYS: Final = (PRODUCE, FETCH, SHARE_FETCH)

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"

_SIZE_FIELD: Final = 4
"""Kafka's fetch quota counts a response's size field and body, but not its header."""


@final
class ClientBytes(Quota):
    """The byte rates of one broker's clients."""

    def __init__(self) -> None:
        super().__init__(API_KEYS, only_admits=(PRODUCE,), only_charges=(FETCH, SHARE_FETCH))
        limits = Limits({})
        self._produced: Final = Buckets(
            PRODUCER_BYTE_RATE, limits, byte_rate_rule(limits, PRODUCER_BYTE_RATE)
        )
        self._consumed: Final = Buckets(
            CONSUMER_BYTE_RATE, limits, byte_rate_rule(limits, CONSUMER_BYTE_RATE, repays=True)
        )
        self.configure(limits, 0.0)

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        if request.api_key != PRODUCE:
            return ALLOW
        bucket = self._produced.find(who, now)
        return ALLOW if bucket is None else _use(bucket, request.size, who, now)

    def limit_fetch(self, request: RequestView, who: Identity, grant: FetchGrant, now: float) -> None:
        bucket = self._consumed.find(who, now)
        if bucket is not None:
            grant.places.add(bucket)

    def give_back_request(self, request: RequestView, items: list[Item], who: Identity, now: float) -> None:
        bucket = self._produced.find(who, now)
        if bucket is not None:
            bucket.give_back(float(request.size), now, who)

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        if request.api_key == PRODUCE or request.replica_id >= 0:
            return ALLOW
        bucket = self._consumed.find(who, now)
        if bucket is None or response.body_size == WITHHELD:
            return ALLOW
        return _use(bucket, response.body_size + _SIZE_FIELD, who, now)

    def configure(self, limits: Limits, now: float) -> None:
        self._produced.configure(limits, byte_rate_rule(limits, PRODUCER_BYTE_RATE), now)
        self._consumed.configure(limits, byte_rate_rule(limits, CONSUMER_BYTE_RATE, repays=True), now)
        self.active = self._produced.any or self._consumed.any
        self.limits_fetches = self._consumed.any

    def buckets(self) -> list[Buckets]:
        return [self._produced, self._consumed]

    def live(self) -> list[Bucket]:
        return self._produced.live() + self._consumed.live()

    def forget_idle(self, now: float) -> bool:
        return self._produced.forget_idle(now) or self._consumed.forget_idle(now)


def _use(bucket: Bucket, size: int, who: Identity, now: float) -> Verdict:
    seconds = bucket.record(size, now, who)
    return ALLOW if seconds <= 0.0 else Verdict(seconds, bucket=bucket, ahead_seconds=bucket.ahead_seconds)


KIND: Final = QuotaKind(
    name="client_bytes",
    keys=(
        QuotaKey(
            PRODUCER_BYTE_RATE,
            LONG,
            help="Bytes per second that a user, a client id or both may produce, by scope.",
        ),
        QuotaKey(
            CONSUMER_BYTE_RATE,
            LONG,
            help="Bytes per second that a user, a client id or both may fetch, by scope.",
        ),
    ),
    scope=PER_BROKER,
    build=ClientBytes,
)
