"""The admin port: /metrics, /healthz, /readyz, /api/quotas, and what the console requests."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from itertools import chain
from typing import Final

import msgspec
from aiohttp import web
from prometheus_client.core import Metric

from proxy.quota.kinds.replication.state import ReplicationState
from proxy.quota.measure.bucket_state import BucketState
from proxy.tasks import Tasks
from proxy.telemetry.console import CHANGE, MAX_BODY, READING, ConsoleRequest, Respond, no_console
from proxy.telemetry.guard import Guard, author_of
from proxy.telemetry.history import INTERVAL_SECONDS, History
from proxy.telemetry.metrics.exposition import exposition
from proxy.telemetry.page.files import FILES, page
from proxy.telemetry.quota_rows import Row, quota_row
from proxy.telemetry.replication import shown
from proxy.telemetry.slices import Slices

log = logging.getLogger(__name__)
JSON: Final = "application/json"
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
        console: Respond = no_console,
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
        console       replies to requests about the quotas of the process
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
        self._console: Final = console
        self._history: Final = History()
        self._guard: Final = guard or Guard("localhost", None)

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard.middleware()], client_max_size=MAX_BODY)
        application.add_routes(
            [
                *(web.get(path, page) for path in FILES),
                web.get("/metrics", self._metrics),
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/api/quotas", self._quotas),
                web.get("/api/history", self._show_history),
                *(web.get(f"/api/{what}", self._ask) for what in READING),
                web.post("/api/change", self._change),
            ]
        )
        application.cleanup_ctx.append(self._sampling)
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
        body = bytearray(b'{"quotas": [')
        async for row in self._rows():
            body += msgspec.json.encode(row) + b", "
        body = body.removesuffix(b", ") + b"]}"
        return web.Response(body=body, content_type=JSON, charset="utf-8")

    async def _rows(self) -> AsyncIterator[Row]:
        """The rows of /api/quotas. The event loop runs other work in between."""
        now = self._time()
        slices = Slices()
        for number, (broker, state) in enumerate(self._buckets(), 1):
            yield quota_row(broker, state, now)
            if number % AT_A_TIME == 0:
                await slices.give_way()
        replication = self._replication()
        if replication is not None:
            for row in shown(replication, now):
                yield row
        for number, row in enumerate(await self.further_rows(), 1):
            yield row
            if number % AT_A_TIME == 0:
                await slices.give_way()

    # The console

    async def _sampling(self, application: web.Application) -> AsyncIterator[None]:
        """Sample the history while the site is served."""
        tasks = Tasks()
        tasks.start(self._sample())
        yield
        await tasks.cancel()

    async def _sample(self) -> None:
        while True:
            try:
                await self.sample()
            except Exception:
                log.exception("admin port: cannot sample the history")
            await asyncio.sleep(INTERVAL_SECONDS)

    async def sample(self) -> None:
        """Add a sample to the history."""
        take = self._history.begin()
        async for row in self._rows():
            take(row)
        self._history.end()

    async def _show_history(self, request: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(self._history.shown()), content_type=JSON)

    async def _ask(self, request: web.Request) -> web.Response:
        what = request.path.rpartition("/")[2]
        reply = await self._console(ConsoleRequest(what, dict(request.query)))
        return web.Response(body=reply.body, status=reply.status, content_type=JSON)

    async def _change(self, request: web.Request) -> web.Response:
        # A form of another site cannot send this type, even with the browser's client certificate.
        if request.content_type != JSON:
            return web.json_response({"error": f"send the change as {JSON}"}, status=415)
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return web.json_response({"error": f"a change has {MAX_BODY} bytes at most"}, status=413)
        change = ConsoleRequest(CHANGE, {}, body, author_of(request), request.remote or "")
        reply = await self._console(change)
        return web.Response(body=reply.body, status=reply.status, content_type=JSON)
