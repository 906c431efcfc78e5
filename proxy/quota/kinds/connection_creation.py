"""New connections per second from an address, on each broker (KIP-612).

connection_creation_rate is a quota of ip entities: an address, a network (an extension: Kafka has none here),
or the default ip. Each address has its own bucket, whichever of these its limit comes from.

Kafka delays a connection over the quota for up to one window, and then closes it. The proxy closes none: it
delays the first request of each connection until the quota allows it. One connection is one token:

    pace      tokens refill at Q per second up to burst_seconds x Q; wait = -tokens / Q
    window    the same, with a burst of all of Kafka's windows but one (10 x Q), which Kafka's sampled rate
              allows an address that was idle

The burst is at least one connection. The longest wait is 30 s, the default request timeout of clients. The
debt is bounded to the same 30 s: while more connections arrive than the quota allows for longer than that,
the quota is exceeded, and 30 s after the storm it is met again.
"""

from typing import Final, final

from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket, RateRule
from proxy.quota.measure.buckets import Buckets
from proxy.quota.quota import INT, PER_BROKER, Quota, QuotaKey, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict

CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
MAX_WAIT_SECONDS: Final = 30.0
"""The default request.timeout.ms of Kafka's clients: one that waits longer gives up and connects again."""


@final
class ConnectionCreation(Quota):
    """The new connections of one broker's clients."""

    def __init__(self) -> None:
        super().__init__(())
        limits = Limits({})
        self._made: Final = Buckets(CONNECTION_CREATION_RATE, limits, _rule(limits))
        self.configure(limits, 0.0)

    def connect(self, address: str, now: float) -> Verdict:
        bucket = self._made.find_ip(address, now)
        if bucket is None:
            return ALLOW
        seconds = bucket.record(1.0, now)
        return ALLOW if seconds <= 0.0 else Verdict(seconds, bucket=bucket)

    def configure(self, limits: Limits, now: float) -> None:
        self._made.configure(limits, _rule(limits), now)
        self.active = self._made.any

    def live(self) -> list[Bucket]:
        return self._made.live()

    def forget_idle(self, now: float) -> None:
        self._made.forget_idle(now)


def _rule(limits: Limits) -> RateRule:
    algorithm = limits.settings.algorithm
    return RateRule(
        window=algorithm.window,
        burst_seconds=algorithm.burst_seconds if algorithm.paced else algorithm.window.burst_seconds,
        least_burst=1.0,
        max_throttle_seconds=MAX_WAIT_SECONDS,
        max_debt_seconds=MAX_WAIT_SECONDS,
        mode=limits.mode(CONNECTION_CREATION_RATE),
    )


KIND: Final = QuotaKind(
    name="connection_creation",
    keys=(QuotaKey(CONNECTION_CREATION_RATE, INT, for_ip=True),),
    api_keys=(),
    scope=PER_BROKER,
    build=ConnectionCreation,
    help="New connections per second that an address may make to each broker; more are served later.",
)
