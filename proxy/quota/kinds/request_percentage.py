"""A share of the broker's time: percent of one thread, of a user, a client id, or both (KIP-124).

Kafka counts the time of its own threads, which a proxy cannot see. What it sees is how long the broker took,
and that is what counts here:

    from    when the request was handed on whole, or when the answer before it on this connection had come,
            whichever is later: a broker works on one request of a connection at a time
    until   its answer came

So work on other machines that the broker waits for counts as well: the followers' part in a Produce with
acks=all, a controller's in CreateTopics. A wait that was asked for does not:

    Fetch, ShareFetch     an answer after max_wait_ms counts for what goes beyond it. One before that has
                          waited for data or has not, which only the broker knows: it counts for what it
                          took, up to 10 ms, which is more than a fetch takes of data in memory
    JoinGroup, SyncGroup  wait for the other members: they count for what they took, up to 10 ms

Every API is charged, read by the proxy or not, on its answer: nothing for acks=0, which has none. Exempt are
followers, brokers among themselves, and authentication, as in Kafka; and what the proxy answers itself.

    pace      percent-seconds refill at Q per second up to burst_seconds x Q; wait = -tokens / Q
    window    wait = (rate - Q) / Q x window, Kafka's own (rate: SampledRate)

No wait is longer than one window (1 s), as in Kafka; what remains is remembered for as long as Kafka's rate
remembers (11 s), so that one slow request does not slow its client down for minutes.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket, RateRule
from proxy.quota.measure.buckets import Buckets
from proxy.quota.quota import DOUBLE, PER_BROKER, Quota, QuotaKey, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import (
    CONTROLLED_SHUTDOWN,
    END,
    FETCH,
    JOIN_GROUP,
    LEADER_AND_ISR,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SHARE_FETCH,
    STOP_REPLICA,
    SYNC_GROUP,
    UPDATE_METADATA,
    WRITE_TXN_MARKERS,
)
from proxy.wire.views import RequestView, ResponseView

REQUEST_PERCENTAGE: Final = "request_percentage"

_FETCHES: Final = (FETCH, SHARE_FETCH)
_GROUP_APIS: Final = (JOIN_GROUP, SYNC_GROUP)
_EXEMPT: Final = (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    CONTROLLED_SHUTDOWN,
    SASL_HANDSHAKE,
    WRITE_TXN_MARKERS,
    SASL_AUTHENTICATE,
)
API_KEYS: Final = tuple([api_key for api_key in range(END) if api_key not in _EXEMPT])
_PERCENT: Final = 100.0
_MAY_HAVE_WAITED_SECONDS: Final = 0.01
"""What an answer counts for at most that may have waited for others than the broker."""


@final
class RequestPercentage(Quota):
    """The requests of one broker's clients, by the time that they take it."""

    def __init__(self) -> None:
        super().__init__(API_KEYS)
        limits = Limits({})
        self._used: Final = Buckets(REQUEST_PERCENTAGE, limits, _rule(limits))
        self.configure(limits, 0.0)

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        if request.replica_id >= 0:
            return ALLOW
        bucket = self._used.find(who, now)
        if bucket is None:
            return ALLOW
        seconds = bucket.record(_busy_seconds(request, response.service_seconds) * _PERCENT, now)
        return ALLOW if seconds <= 0.0 else Verdict(seconds, bucket=bucket)

    def configure(self, limits: Limits, now: float) -> None:
        self._used.configure(limits, _rule(limits), now)
        self.active = self._used.any

    def live(self) -> list[Bucket]:
        return self._used.live()

    def forget_idle(self, now: float) -> None:
        self._used.forget_idle(now)


def _rule(limits: Limits) -> RateRule:
    algorithm = limits.settings.algorithm
    return RateRule(
        window=algorithm.window,
        burst_seconds=algorithm.burst_seconds if algorithm.paced else 0.0,
        max_throttle_seconds=min(algorithm.window.seconds, algorithm.max_throttle_seconds),
        max_debt_seconds=algorithm.window.total_seconds if algorithm.paced else 0.0,
        mode=limits.mode(REQUEST_PERCENTAGE),
    )


def _busy_seconds(request: RequestView, seconds: float) -> float:
    """How much of the time until the answer counts as the broker's work."""
    api_key = request.api_key
    if api_key in _FETCHES:
        asked = max(request.max_wait_ms, 0) / 1000.0
        return seconds - asked if seconds >= asked else min(seconds, _MAY_HAVE_WAITED_SECONDS)
    if api_key in _GROUP_APIS:
        return min(seconds, _MAY_HAVE_WAITED_SECONDS)
    return seconds


KIND: Final = QuotaKind(
    name="request_percentage",
    keys=(QuotaKey(REQUEST_PERCENTAGE, DOUBLE),),
    api_keys=API_KEYS,
    scope=PER_BROKER,
    build=RequestPercentage,
    help="Percent of one thread's time that a user's or client id's requests may take each broker.",
)
