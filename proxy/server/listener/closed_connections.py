"""ClosedConnections: counts why connections ended, and logs those that ended with an error."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from proxy.relay.close_reasons import PRODUCE_REJECTED, RelayError
from proxy.server.logs.log_limit import LogLimit

log = logging.getLogger(__name__)


class ClosedConnections:
    """The connections of one listener that have ended."""

    def __init__(self, listener: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.by_reason: Final[dict[str, int]] = {}
        """Counts by the metric's label `reason`."""
        self._listener: Final = listener
        self._clock: Final = clock
        self._lines: Final = LogLimit(log, listener)

    def count(self, reason: str) -> None:
        """Count a connection that has ended."""
        self.by_reason[reason] = self.by_reason.get(reason, 0) + 1

    def reject(self, reason: str, peer: str, why: str) -> None:
        """Count a client that is not served, and log it."""
        self.count(reason)
        self.log_rejected(reason, peer, why)

    def log_rejected(self, reason: str, peer: str, why: str) -> None:
        """Log a client that is not served; count() counts it when its connection has ended."""
        about = {"address": peer}
        self._warn(reason, "%s: connection from %s rejected: %s", self._listener, peer, why, about=about)

    def failed(
        self, peer: str, node_id: int | None, error: RelayError, *, user: str = "", client_id: str = ""
    ) -> None:
        """Log a connection that ends with an error; count() counts it when it has ended. `node_id`: the
        broker's; None while the bootstrap port has chosen none.
        """
        broker = "bootstrap" if node_id is None else f"broker {node_id}"
        text = "%s: %s (user %s, client id %r) -> %s: connection closed: %s"
        parts = (self._listener, peer, user, client_id, broker, error)
        if error.reason == PRODUCE_REJECTED:
            # RejectionLog logs these by topic.
            log.debug(text, *parts)
        else:
            about = {"address": peer, "user": user, "client_id": client_id}
            if node_id is not None:
                about["broker"] = str(node_id)
            self._warn(error.reason, text, *parts, about=about)

    def accept_failed(self, error: OSError) -> None:
        """Log that a port cannot accept connections."""
        self._warn("accept", "%s: cannot accept connections: %s", self._listener, error)

    def accepts_later(self) -> None:
        """Log that no connection is accepted until others end."""
        self._warn(
            "accept",
            "%s: limits.max_connections is reached, or what the limit of open files allows: "
            "new connections wait until others end",
            self._listener,
        )

    def flush_log(self) -> None:
        """Log how many lines were omitted. Call this every second."""
        self._lines.flush(self._clock())

    def _warn(self, cause: str, message: str, *args: object, about: Mapping[str, str] | None = None) -> None:
        about = {"listener": self._listener, **(about or {})}
        self._lines.warn(cause, self._clock(), message, *args, about=about)
