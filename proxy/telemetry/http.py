"""The admin port: /metrics, /healthz, /readyz, /api/quotas, and what the console requests."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Final

import msgspec
from aiohttp import web
from prometheus_client.core import Metric

from proxy.telemetry.console import CHANGE, MAX_BODY, READING, ConsoleRequest, Respond, no_console
from proxy.telemetry.guard import Guard, author_of
from proxy.telemetry.metrics.exposition import exposition
from proxy.telemetry.page.files import FILES, page
from proxy.telemetry.quota_table import QuotaTable

JSON: Final = "application/json"


class AdminSite:
    """The admin port's pages."""

    def __init__(
        self,
        *,
        families: Callable[[], Iterable[Metric | None]],
        process: Callable[[], Iterable[Metric]] = tuple,
        problems: Callable[[], list[str]],
        warnings: Callable[[], list[str]],
        table: QuotaTable,
        certificates: Callable[[], Mapping[str, float]] = dict,
        console: Respond = no_console,
        guard: Guard | None = None,
    ) -> None:
        """
        families      the families of /metrics, with a None wherever the event loop may run other work
        process       further families, which are read in a thread of their own
        problems      why clients cannot be served
        warnings      what is wrong but keeps no client from being served
        table         the rows of /api/quotas, and their history
        certificates  days until the certificates expire, by file
        console       replies to requests about the quotas of the process
        """
        self._families: Final = families
        self._process: Final = process
        self._one_scrape: Final = asyncio.Lock()
        """The families keep the counters of the last scrape, so that only one may be read at a time."""
        self._problems: Final = problems
        self._warnings: Final = warnings
        self._table: Final = table
        self._certificates: Final = certificates
        self._console: Final = console
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
        return application

    async def refresh_metrics(self) -> None:
        """Update what the families are read from. Called before each scrape; a subclass may override it."""

    async def refresh_readiness(self) -> None:
        """Update the problems and warnings. Called before each /readyz; a subclass may override it."""

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
        async for row in self._table.rows():
            body += msgspec.json.encode(row) + b", "
        body = body.removesuffix(b", ") + b"]}"
        return web.Response(body=body, content_type=JSON, charset="utf-8")

    # The console

    async def _show_history(self, request: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(self._table.history.shown()), content_type=JSON)

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
