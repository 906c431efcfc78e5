"""ClosedConnections: counts why connections ended, and logs the clients that were not served."""

import logging
import time
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)
LOG_EVERY_SECONDS: Final = 10.0
"""Rejected clients reconnect at once, often many at a time: one log line per reason in this time is enough.
"""


class ClosedConnections:
    """The connections of one listener that have ended."""

    def __init__(self, listener: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.by_reason: Final[dict[str, int]] = {}
        """Counts by the metric's label `reason`."""
        self._listener: Final = listener
        self._clock: Final = clock
        self._logged_at: Final[dict[str, float]] = {}

    def count(self, reason: str) -> None:
        """Count a connection that has ended."""
        self.by_reason[reason] = self.by_reason.get(reason, 0) + 1

    def reject(self, reason: str, peer: str, why: str) -> None:
        """Count a client that is not served, and log it unless the reason was logged a moment ago."""
        self.count(reason)
        now = self._clock()
        if now - self._logged_at.get(reason, float("-inf")) >= LOG_EVERY_SECONDS:
            self._logged_at[reason] = now
            log.warning("%s: connection from %s rejected: %s", self._listener, peer, why)
