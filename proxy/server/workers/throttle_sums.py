"""SummedThrottleLog: logs replication throttles that are too low for the followers of all workers together.

A worker logs those that are too low for its own followers (ThrottleLog).
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from proxy.server.logs.throttle_log import LOG_EVERY_SECONDS
from proxy.telemetry.metrics.summed import LowThrottle
from proxy.telemetry.replication import DOES, STATED_AT_LEAST_SECONDS

log = logging.getLogger(__name__)


class SummedThrottleLog:
    """Logs one warning a minute for each throttle that is too low."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time: Final = time
        self._since: dict[tuple[str, str], float] = {}
        """Since when each throttle is too low."""
        self._logged_at: Final[dict[tuple[str, str], float]] = {}

    def check(self, low: Iterable[LowThrottle]) -> None:
        """Log what is due; `low` are the throttles that are too low now."""
        now = self._time()
        since: dict[tuple[str, str], float] = {}
        for throttle in low:
            side = (throttle.role, throttle.broker)
            since[side] = self._since.get(side, now)
            due = now - self._logged_at.get(side, float("-inf")) >= LOG_EVERY_SECONDS
            if due and now - since[side] >= STATED_AT_LEAST_SECONDS:
                self._logged_at[side] = now
                log.warning(
                    "broker %s %s throttled replicas at no more than %.0f B/s through all workers, but they "
                    "grow by %.0f B/s: %.0f replicas are behind and cannot get in sync; raise "
                    "%s.replication.throttled.rate",
                    throttle.broker,
                    DOES[throttle.role],
                    throttle.limit,
                    throttle.inbound,
                    throttle.behind,
                    throttle.role,
                )
        self._since = since
