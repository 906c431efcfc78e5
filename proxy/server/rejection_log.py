"""RejectionLog: says in the log what producers were rejected, now and then."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from proxy.quota.engine import QuotaEngines
from proxy.quota.kinds import broker_bytes_in
from proxy.quota.kinds.broker_bytes_in import SHARE, BrokerBytesIn
from proxy.quota.rejection.rejections import RejectedTopic

log = logging.getLogger(__name__)
LOOK_SECONDS: Final = 1.0
LOG_EVERY_SECONDS: Final = 30.0
"""For each broker, topic and reason."""

RejectionKey = tuple[int, str, str]
"""Broker, topic, reason."""


class RejectionLog:
    """One line for each broker, topic and reason, of what has come since the line before."""

    def __init__(self, engines: QuotaEngines, time: Callable[[], float]) -> None:
        self._engines: Final = engines
        self._time: Final = time
        self._logged: Final[dict[RejectionKey, tuple[float, int, int]]] = {}
        """When the last line was, and the requests and bytes until then."""

    async def run(self) -> None:
        """Look after the rejections for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Log what is due."""
        now = self._time()
        for node_id, engine in self._engines.engines().items():
            for (topic, reason), rejected in engine.rejections.topics.items():
                key = (node_id, topic, reason)
                at, requests, size = self._logged.get(key, (float("-inf"), 0, 0))
                if rejected.requests > requests and now - at >= LOG_EVERY_SECONDS:
                    self._say(key, rejected, rejected.requests - requests, rejected.bytes - size, now)
                    self._logged[key] = (now, rejected.requests, rejected.bytes)

    def _say(self, key: RejectionKey, rejected: RejectedTopic, requests: int, size: int, now: float) -> None:
        node_id, topic, reason = key
        log.warning(
            "broker %d, topic %s: %d bytes of %d Produce requests rejected (%s), the last of client id %r "
            "(user %s): %.0f B/s of %.0f%s",
            node_id,
            topic,
            size,
            requests,
            reason,
            rejected.client_id,
            rejected.principal,
            rejected.rate,
            rejected.limit,
            self._total(node_id, now) if reason == SHARE else "",
        )

    def _total(self, node_id: int, now: float) -> str:
        """The broker's own rate and threshold."""
        for quota in self._engines.of_kind(broker_bytes_in.KIND):
            if isinstance(quota, BrokerBytesIn) and quota.node_id == node_id and quota.active:
                total = quota.live()[0]
                return f"; the broker's {total.measure(now):.0f} B/s of {total.limit:.0f}"
        return ""
