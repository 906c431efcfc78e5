"""RateRule: how a bucket limits."""

from typing import Final, final

from proxy.quota.limits.enforcement import ENFORCE, KAFKA_WINDOW, OBSERVE, UNLIMITED, RateWindow
from proxy.quota.limits.limits import Limits


@final
class RateRule:
    """The rule of a quota's buckets, which share the object.

    window: Kafka's samples.
    burst_seconds, least_burst: the size of the token bucket: seconds of the limit, but at least that many
    tokens. If both are 0, there are no tokens, and Kafka's sampled rate limits.
    averages: the average of Kafka's broker meters limits instead of both; requests are rejected by it.
    max_throttle_seconds: the longest wait for one use; the rest of the debt remains in the bucket. Byte rates
    have no such bound.
    max_debt_seconds: the largest debt that is remembered.
    repays: without tokens, a use over the limit is paid whole, even if Kafka's rate forgets it sooner. For
    consumers: Kafka withholds a response over the limit, and the proxy delivers one.
    mode: ENFORCE or OBSERVE. The clients of an observed bucket do not wait, so its debt would only grow: each
    debt counts as paid at once, as if the client had waited.
    """

    __slots__ = (
        "averages",
        "burst_seconds",
        "least_burst",
        "max_debt_seconds",
        "max_throttle_seconds",
        "observed",
        "paced",
        "repays",
        "window",
    )

    def __init__(
        self,
        *,
        window: RateWindow = KAFKA_WINDOW,
        burst_seconds: float = 0.0,
        least_burst: float = 0.0,
        max_throttle_seconds: float = UNLIMITED,
        max_debt_seconds: float = UNLIMITED,
        repays: bool = False,
        averages: bool = False,
        mode: str = ENFORCE,
    ) -> None:
        self.observed: Final = mode == OBSERVE
        self.burst_seconds: Final = burst_seconds
        self.window: Final = window
        self.max_throttle_seconds: Final = max_throttle_seconds
        self.max_debt_seconds: Final = 0.0 if self.observed else max_debt_seconds
        self.least_burst: Final = least_burst
        self.averages: Final = averages
        self.paced: Final = not averages and (burst_seconds > 0.0 or least_burst > 0.0)
        """Whether tokens limit."""
        self.repays: Final = repays and not self.paced and not self.observed

    def same(self, other: "RateRule") -> bool:
        """Whether both rules limit in the same way."""
        return (
            self.burst_seconds == other.burst_seconds
            and self.window.same(other.window)
            and self.max_throttle_seconds == other.max_throttle_seconds
            and self.max_debt_seconds == other.max_debt_seconds
            and self.least_burst == other.least_burst
            and self.repays == other.repays
            and self.averages == other.averages
            and self.observed == other.observed
        )


def byte_rate_rule(limits: Limits, key: str, repays: bool = False) -> RateRule:
    """The rule of a quota of bytes per second: the configured algorithm; waits and debts have no bound."""
    algorithm = limits.settings.algorithm
    return RateRule(
        window=algorithm.window,
        burst_seconds=algorithm.burst_seconds if algorithm.paced else 0.0,
        repays=repays,
        mode=limits.mode(key),
    )
