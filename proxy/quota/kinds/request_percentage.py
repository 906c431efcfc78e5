"""The broker's time that the requests of a user, a client id, or both take, in percent of a thread (KIP-124).

Kafka measures the time of its own threads, which a proxy cannot see. The proxy charges the broker's service
time:

    from    when the whole request was forwarded, or when the previous response on the connection had arrived,
            whichever is later: a broker processes one request of a connection at a time
    until   the response arrived

All requests of one bucket that are at the broker at the same moment are charged no more together than the
time of all threads of the broker (num.io.threads and num.network.threads; BusyTime), if the proxy may
describe its configs: the others wait in its queue, which Kafka does not charge. This does not apply to
fetches and JoinGroup, for which there are other bounds, and not if brokers share the quota.

This includes work of other machines that the broker waits for: the followers' in a Produce with acks=all, the
controller's in CreateTopics. It excludes waits that the client requested:

    Fetch                 The number of its partitions, or of those of its session, limits the charge (see
                          proxy.quota.measure.fetch_time). Otherwise max_wait_ms would hide the work of a
                          large request.
    ShareFetch            A response after max_wait_ms costs the time beyond it. For an earlier response only
                          the broker knows how long it waited for data: it costs its time, but at most 10 ms,
                          200 ns for each byte of the request and 1 ns for each byte of the response.
    JoinGroup, SyncGroup  The broker waits for other members: they cost their time, but no more than the
                          maximum of such a ShareFetch.

Requests of all APIs are charged when their response arrives. As in Kafka, followers, logins, and Produce with
acks=0 are exempt; if a quota by topic makes the proxy await the response to such a Produce, it is charged.
Requests that only brokers send, such as WriteTxnMarkers, are charged if a client sends them, as Kafka charges
those that it rejects. After its login, a client's SaslHandshake and SaslAuthenticate cost 50 microseconds at
most: Kafka charges those that are no re-authentication. Where the proxy does not know the login, each of them
costs that.

The CPU time of the proxy's own work on a request that it intercepts, such as AlterClientQuotas, is charged in
addition, as Kafka charges that of its threads. Any other request that the proxy answers itself (a fetch
without records, a rejected Produce request, an unsupported version) costs a fixed time, and more for each
partition.

    pace      percent-seconds refill at Q per second up to burst_seconds x Q; wait = -tokens / Q (TokenBucket)
    window    wait = (rate - Q) / Q x window, as in Kafka (SampledRate, QuotaUtils.boundedThrottleTime)

As in Kafka, no response makes its client wait for longer than one window (1 s). A debt is remembered as long
as Kafka's rate remembers a use (11 s), so that one slow request does not slow its client down for minutes.
The first request on a connection waits until the debt is paid (proxy.relay.requests.first_wait), and a list
until the lists before it are (proxy.relay.budgets.list_debts); Kafka forwards both at once.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.buckets import Buckets
from proxy.quota.measure.busy_time import BusyTime
from proxy.quota.measure.fetch_time import fetch_seconds, most_seconds
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.quota import DOUBLE, PER_BROKER, Quota, QuotaKey, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import (
    END,
    FETCH,
    JOIN_GROUP,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SHARE_FETCH,
    SYNC_GROUP,
)
from proxy.wire.views import RequestView, ResponseView

REQUEST_PERCENTAGE: Final = "request_percentage"

_GROUP_APIS: Final = (JOIN_GROUP, SYNC_GROUP)
_LOGIN_APIS: Final = (SASL_HANDSHAKE, SASL_AUTHENTICATE)
_BOUNDED_APIS: Final = (FETCH, SHARE_FETCH, *_GROUP_APIS, *_LOGIN_APIS)
"""The requests for which the charge does not depend on the service time alone."""
API_KEYS: Final = tuple(range(END))
_PERCENT: Final = 100.0
"""Percent-seconds, the unit of the quota, for each second."""
_LOGIN_SECONDS: Final = 50e-6
"""The maximum charge for a message of a login: a broker delays its response to a failed login, so the time
says little about its work.
"""


@final
class RequestPercentage(Quota):
    """The request time of one broker's clients."""

    def __init__(self) -> None:
        super().__init__(API_KEYS, only_charges=API_KEYS)
        self.limits_time = True
        limits = Limits({})
        self._used: Final = Buckets(REQUEST_PERCENTAGE, limits, _rule(limits))
        self.configure(limits, 0.0)

    def owed(self, who: Identity, now: float) -> Bucket | None:
        return self._used.find(who, now)

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        if request.replica_id >= 0:
            return ALLOW
        bucket = self._used.find(who, now)
        if bucket is None:
            return ALLOW
        used = self._busy_seconds(bucket, request, response) * _PERCENT
        seconds = bucket.record(used, now)
        if seconds <= 0.0:
            return ALLOW
        longest = bucket.rule.window.total_seconds
        refill = used / bucket.limit if used < longest * bucket.limit else longest
        return Verdict(seconds, bucket=bucket, refill_seconds=refill)

    def _busy_seconds(self, bucket: Bucket, request: RequestView, response: ResponseView) -> float:
        """What to charge for a request."""
        if self.threads <= 0 or response.began <= 0.0 or request.api_key in _BOUNDED_APIS:
            return _busy_seconds(request, response)
        busy = bucket.busy_time
        if busy is None:
            busy = bucket.busy_time = BusyTime()
        return busy.charge(response.began, response.began + response.service_seconds, float(self.threads))

    def configure(self, limits: Limits, now: float) -> None:
        self._used.configure(limits, _rule(limits), now)
        self.active = self._used.any

    def buckets(self) -> list[Buckets]:
        return [self._used]

    def live(self) -> list[Bucket]:
        return self._used.live()

    def forget_idle(self, now: float) -> bool:
        return self._used.forget_idle(now)


def _rule(limits: Limits) -> RateRule:
    algorithm = limits.settings.algorithm
    return RateRule(
        window=algorithm.window,
        burst_seconds=algorithm.burst_seconds if algorithm.paced else 0.0,
        max_throttle_seconds=min(algorithm.window.seconds, algorithm.max_throttle_seconds),
        max_debt_seconds=algorithm.window.total_seconds if algorithm.paced else 0.0,
        mode=limits.mode(REQUEST_PERCENTAGE),
    )


def _busy_seconds(request: RequestView, response: ResponseView) -> float:
    """The part of the service time that is charged."""
    api_key = request.api_key
    seconds = response.service_seconds
    if api_key == FETCH:
        return fetch_seconds(request, response)
    if api_key == SHARE_FETCH:
        asked = max(request.max_wait_ms, 0) / 1000.0
        return min(seconds, most_seconds(request, response)) if seconds < asked else seconds - asked
    if api_key in _GROUP_APIS:
        return min(seconds, most_seconds(request, response))
    if api_key in _LOGIN_APIS:
        return min(seconds, _LOGIN_SECONDS)
    return seconds


KIND: Final = QuotaKind(
    name="request_percentage",
    keys=(
        QuotaKey(
            REQUEST_PERCENTAGE,
            DOUBLE,
            help="Percentage of one thread's time that a user, a client id or both may use, by scope.",
        ),
    ),
    scope=PER_BROKER,
    build=RequestPercentage,
)
