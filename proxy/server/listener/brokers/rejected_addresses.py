"""RejectedAddresses: counts and logs addresses of brokers that `upstream.hosts` does not allow."""

import logging
import time
from collections.abc import Callable
from typing import Final

from proxy.server.logs.log_limit import LogLimit
from proxy.upstream.addresses import join_address

log = logging.getLogger(__name__)
AGAIN_SECONDS: Final = 60.0
"""Brokers name an address in each response. It is logged once in this time."""
ADDRESSES_AT_MOST: Final = 1000
"""Addresses whose last line is remembered."""


class RejectedAddresses:
    """The rejected addresses of one listener."""

    def __init__(self, listener: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        """How often the proxy has rejected an address that a broker named, or a connection to it."""
        self._listener: Final = listener
        self._clock: Final = clock
        self._lines: Final = LogLimit(log, listener)
        self._logged: Final[dict[tuple[str, int], float]] = {}
        """When an address was logged last; the oldest first."""

    def reject(self, host: str, port: int) -> None:
        """Count an address, and log it unless it has been logged just now."""
        self.count += 1
        now = self._clock()
        if now - self._logged.get((host, port), now - AGAIN_SECONDS) < AGAIN_SECONDS:
            return
        self._logged.pop((host, port), None)
        if len(self._logged) >= ADDRESSES_AT_MOST:
            del self._logged[next(iter(self._logged))]
        self._logged[host, port] = now
        self._lines.warn(
            "rejected addresses",
            now,
            "%s: upstream.hosts does not allow %r, which a broker names as a broker's address; "
            "add it to upstream.hosts if it is one",
            self._listener,
            join_address(host, port),
            about={"listener": self._listener},
        )

    def flush_log(self) -> None:
        """Log how many lines were omitted. Call this every second."""
        self._lines.flush(self._clock())
