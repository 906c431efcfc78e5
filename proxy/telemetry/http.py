"""The admin port: /metrics, /healthz, /readyz, /api/quotas."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Final

import msgspec
from aiohttp import web
from prometheus_client.core import Metric

from proxy.quota.kinds.replication.state import ReplicationState
from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.guard import Guard
from proxy.telemetry.metrics.exposition import exposition
from proxy.telemetry.page.files import FILES, page
from proxy.telemetry.quota_rows import Row, quota_row
from proxy.telemetry.replication import shown
from proxy.telemetry.slices import Slices

AT_A_TIME: Final = 25
"""Buckets that are encoded before the event loop may run other work; they take about a quarter of a slice."""


class AdminSite:
    """The admin port's pages."""

    def __init__(
        self,
        *,
        families: Callable[[], Iterable[Metric | None]],
        process: Callable[[], Iterable[Metric]] = tuple,
        problems: Callable[[], list[str]],
        warnings: Callable[[], list[str]],
        buckets: Callable[[], Iterable[tuple[int, BucketState]]],
        time: Callable[[], float],
        certificates: Callable[[], Mapping[str, float]] = dict,
        replication: Callable[[], ReplicationState | None] = lambda: None,
        guard: Guard | None = None,
    ) -> None:
        """
        families      the families of /metrics, with a None wherever the event loop may run other work
        process       further families, which are read in a thread of their own
        problems      why clients cannot be served
        warnings      what is wrong but keeps no client from being served
        buckets       the active buckets with their brokers' node ids, for /api/quotas
        time          the clock of the buckets' throttled_until
        certificates  days until the certificates expire, by file
        replication   the state of the replication quotas; None without a replication listener
        """
        self._families: Final = families
        self._process: Final = process
        self._one_scrape: Final = asyncio.Lock()
        self._replication: Final = replication
        self._problems: Final = problems
        self._warnings: Final = warnings
        self._buckets: Final = buckets
        self._time: Final = time
        self._certificates: Final = certificates
        self._guard: Final = guard or Guard("localhost", None)

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard.middleware()])
        application.add_routes(
            [
                *(web.get(path, page) for path in FILES),
                web.get("/metrics", self._metrics),
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/api/quotas", self._quotas),
            ]
        )
        return application

    async def refresh_metrics(self) -> None:
        """Called before the families are read."""

    async def refresh_readiness(self) -> None:
        """Called before the problems and warnings are read."""

    async def further_rows(self) -> list[Row]:
        """Rows of /api/quotas besides those of the buckets and of replication."""
        return []

    async def _metrics(self, request: web.Request) -> web.Response:
        async with self._one_scrape:
            await self.refresh_metrics()
            process = await asyncio.to_thread(lambda: list(self._process()))
            steps = chain(process, self._families())
            body, content_type = await exposition(steps, request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _readyz(self, request: web.Request) -> web.Response:
        await self.refresh_readiness()
        problems = self._problems()
        status = 503 if problems else 200
        if not self._guard.allows(request):
            return web.json_response({"ready": not problems}, status=status)
        detail = {
            "ready": not problems,
            "problems": problems,
            "warnings": self._warnings(),
            "certificate_days_left": {file: round(left, 1) for file, left in self._certificates().items()},
        }
        return web.json_response(detail, status=status)

    async def _quotas(self, request: web.Request) -> web.Response:
        now = self._time()
        body = bytearray(b'{"quotas": [')
        slices = Slices()
        for number, (broker, state) in enumerate(self._buckets(), 1):
            body += msgspec.json.encode(quota_row(broker, state, now)) + b", "
            if number % AT_A_TIME == 0:
                await slices.give_way()
        replication = self._replication()
        if replication is not None:
            for row in shown(replication, now):
                body += msgspec.json.encode(row) + b", "
        for number, row in enumerate(await self.further_rows(), 1):
            body += msgspec.json.encode(row) + b", "
            if number % AT_A_TIME == 0:
                await slices.give_way()
        body = body.removesuffix(b", ") + b"]}"
        return web.Response(body=body, content_type="application/json", charset="utf-8")
