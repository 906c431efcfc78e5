"""The admin site of all workers, which the supervisor serves.

Only the supervisor imports this file, and late: aiohttp and prometheus_client take long to import.
"""

import socket
import time
from collections.abc import Iterator
from typing import Final

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.config.settings import Admin
from proxy.security.tls import TlsFiles
from proxy.server.admin_port.http import admin_guard, serve_application
from proxy.server.workers.channel import METRICS
from proxy.server.workers.fleet import Fleet
from proxy.server.workers.throttle_sums import SummedThrottleLog
from proxy.telemetry.http import AdminSite
from proxy.telemetry.metrics.series import PREFIX
from proxy.telemetry.metrics.summed import Family, SummedFamilies
from proxy.telemetry.quota_table import QuotaTable

_families: Final = msgspec.json.Decoder(list[Family])


class WorkersSite(AdminSite):
    """The pages of AdminSite, as sums over the workers."""

    def __init__(self, settings: Admin, fleet: Fleet) -> None:
        super().__init__(
            families=self._summed,
            problems=fleet.problems,
            warnings=fleet.warnings,
            table=QuotaTable(further=fleet.quota_rows),
            certificates=fleet.certificates,
            console=fleet.console,
            guard=admin_guard(settings),
        )
        self._fleet: Final = fleet
        self._sums: Final = SummedFamilies()
        self._throttles: Final = SummedThrottleLog(time.monotonic)

    async def count(self) -> None:
        """Take the metrics of all workers."""
        workers = self._fleet.all
        for worker, body in zip(workers, await self._fleet.ask_all(workers, METRICS), strict=True):
            if body and worker in self._fleet.all:
                self._sums.take(worker.pid, _families.decode(body))
        self._throttles.check(self._sums.low_throttles())

    def ended(self, pid: int, last: bytes) -> None:
        """Keep the counts of a worker that has ended; `last` are its last metrics, empty if it was killed."""
        if last:
            self._sums.take(pid, _families.decode(last))
        self._sums.forget(pid)

    def _summed(self) -> Iterator[Metric]:
        yield from self._sums.families()
        text = "Workers that run."
        yield GaugeMetricFamily(PREFIX + "workers", text, value=len(self._fleet.running))
        text = "Workers that ended and were started again."
        yield CounterMetricFamily(PREFIX + "worker_restarts", text, value=self._fleet.restarts)

    async def refresh_metrics(self) -> None:
        await self.count()

    async def refresh_readiness(self) -> None:
        await self._fleet.ask_how_they_are()

    async def serve(self, bound: socket.socket, tls: TlsFiles | None) -> None:
        """Serve on a bound socket; never returns."""
        await serve_application(self.application(), bound, tls)
        await self._table.run()
