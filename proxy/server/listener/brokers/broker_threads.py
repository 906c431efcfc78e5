"""BrokerThreads: tells the quotas how many threads each broker has.

request_percentage charges the requests that are at a broker at the same moment no more together than the
time of all its threads (proxy.quota.measure.busy_time). Without the right to describe the broker's configs,
each request is charged its whole time there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from proxy.errors import UpstreamUnavailable
from proxy.quota.engines import QuotaEngines
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.refresh import ClusterRefresh

log = logging.getLogger(__name__)
LOOK_SECONDS: Final = 1.0
"""How often it is determined whether a broker has to be asked."""
VALID_SECONDS: Final = 60.0
"""After so long, a broker is asked again: its threads may be changed while it runs."""


class BrokerThreads:
    """Asks each broker while a quota limits request time."""

    def __init__(
        self,
        *,
        listener: str,
        engines: QuotaEngines,
        cluster: ClusterRefresh,
        counts: PartitionCounts,
        time: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._listener: Final = listener
        self._engines: Final = engines
        self._cluster: Final = cluster
        self._counts: Final = counts
        self._time: Final = time
        self._sleep: Final = sleep
        self._valid_until: Final[dict[int, float]] = {}
        """By node id."""
        self._problems: Final[dict[int, str]] = {}

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self.look()
            await self._sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Ask the brokers for which it is time."""
        if not self._engines.limits_time:
            return
        for node_id in sorted(self._cluster.view.nodes):
            if self._time() >= self._valid_until.get(node_id, 0.0):
                await self._ask(node_id)
                self._valid_until[node_id] = self._time() + VALID_SECONDS

    async def _ask(self, node_id: int) -> None:
        problem = ""
        threads = 0
        try:
            threads = await self._counts.threads(node_id)
        except UpstreamUnavailable as error:
            problem = str(error)
        if problem and problem != self._problems.get(node_id):
            log.info(
                "%s: broker %d: cannot describe its threads, so request_percentage charges the whole time of "
                "each request: %s",
                self._listener,
                node_id,
                problem,
            )
        self._problems[node_id] = problem
        self._engines.see_threads(node_id, threads)
