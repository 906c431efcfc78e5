"""New connections per second from an address, on each broker (KIP-612).

connection_creation_rate is a quota of ip entities: an address, a network (an extension: Kafka has none here),
or the default ip. Each address has its own bucket, also if its limit is that of a network or of the default.

One connection is one token. With both algorithms, tokens refill at Q per second up to burst_seconds x Q, at
least one:

    wait = -tokens / Q
    wait <= 10 s        the connection is served after the wait, in turn
    wait > 10 s         the connection is closed after one window, and takes no token

Kafka accepts up to 10 x Q connections in its window at once, and closes all others after at most one window,
without counting them (ConnectionQuotas in its SocketServer). As in Kafka, connections that are not served
leave no debt: 10 s after a storm, the next connection is served at once.
"""

from typing import Final, final

from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.buckets import Buckets
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.quota import INT, PER_BROKER, Quota, QuotaKey, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict

CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
MAX_WAIT_SECONDS: Final = 10.0
"""librdkafka's api.version.request.timeout.ms, the shortest time after which a client gives up. It also
bounds how many connections wait: 10 x Q per address.
"""
LEAST_PART: Final = 0.1
"""While other processes use the whole limit, this one has nearly none of it until a moment after it has
reported that a connection waits. A wait does not become shorter when the part grows, so it is at most as long
as with this part.
"""


@final
class ConnectionCreation(Quota):
    """The new connections of one broker's clients."""

    def __init__(self) -> None:
        super().__init__(())
        limits = Limits({})
        self._made: Final = Buckets(CONNECTION_CREATION_RATE, limits, _rule(limits))
        self._close_after = limits.settings.algorithm.window.seconds
        self.configure(limits, 0.0)

    def connect(self, address: str, now: float) -> Verdict:
        bucket = self._made.find_ip(address, now)
        if bucket is None:
            return ALLOW
        seconds = bucket.record(1.0, now)
        if seconds <= 0.0:
            return ALLOW
        seconds *= bucket.limit / _least_rate(bucket)
        if seconds <= MAX_WAIT_SECONDS or bucket.observed:
            return Verdict(seconds, bucket=bucket)
        bucket.record(-1.0, now)
        tokens = bucket.tokens
        excess = bucket.debt(now) - MAX_WAIT_SECONDS * _least_rate(bucket)
        if excess > 0.0 and tokens is not None:
            # The limit was lowered. The debt may be no larger than one that the new limit allows.
            tokens.record(-excess, now)
        return Verdict(self._close_after, bucket=bucket, closes=True)

    def give_back_connection(self, address: str, now: float) -> None:
        bucket = self._made.find_ip(address, now)
        if bucket is not None:
            bucket.record(-1.0, now)

    def configure(self, limits: Limits, now: float) -> None:
        self._made.configure(limits, _rule(limits), now)
        self._close_after = limits.settings.algorithm.window.seconds
        self.active = self._made.any

    def buckets(self) -> list[Buckets]:
        return [self._made]

    def live(self) -> list[Bucket]:
        return self._made.live()

    def forget_idle(self, now: float) -> bool:
        return self._made.forget_idle(now)


def _least_rate(bucket: Bucket) -> float:
    """The rate at which connections are served, per second: at least that of LEAST_PART."""
    return max(bucket.limit, bucket.whole_limit * LEAST_PART)


def _rule(limits: Limits) -> RateRule:
    algorithm = limits.settings.algorithm
    return RateRule(
        window=algorithm.window,
        burst_seconds=algorithm.burst_seconds if algorithm.paced else algorithm.window.seconds,
        least_burst=1.0,
        mode=limits.mode(CONNECTION_CREATION_RATE),
    )


KIND: Final = QuotaKind(
    name="connection_creation",
    keys=(
        QuotaKey(
            CONNECTION_CREATION_RATE,
            INT,
            for_ip=True,
            help="Connections per second that an address may open, by scope; others wait, or are closed.",
        ),
    ),
    scope=PER_BROKER,
    build=ConnectionCreation,
)
