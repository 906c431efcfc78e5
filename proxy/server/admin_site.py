"""The admin site of the process.

Only admin_port imports this file, and late: aiohttp and prometheus_client take long to import.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import chain

from aiohttp import web
from prometheus_client.core import Metric

from proxy.config.settings import Admin
from proxy.security.secrets import read_secret
from proxy.security.tls import TlsFiles
from proxy.server.admin_sources import AdminSources
from proxy.server.listener.ports import BACKLOG
from proxy.telemetry.guard import Guard
from proxy.telemetry.http import AdminSite
from proxy.telemetry.metrics.certificates import certificate_families
from proxy.telemetry.metrics.connections import admission_families
from proxy.telemetry.metrics.metrics import ProxyCollector
from proxy.telemetry.metrics.process import process_families
from proxy.telemetry.metrics.rejections import rejection_families
from proxy.telemetry.metrics.replication import replication_families
from proxy.telemetry.metrics.series import NoteExcluded
from proxy.telemetry.metrics.sharing import sharing_families


def admin_guard(admin: Admin) -> Guard:
    """The access rules of the settings; the token is read at each request, so that it can be replaced."""
    token = partial(read_secret, admin.token_file, admin.token_env) if admin.has_token else None
    return Guard(admin.bind, token, by_certificate=admin.by_certificate)


async def serve_site(
    sources: AdminSources, bound: socket.socket, tls: TlsFiles | None
) -> Callable[[], Awaitable[None]]:
    """Serve the site on a bound socket until the returned function is called."""
    return await serve_application(admin_site(sources).application(), bound, tls)


async def serve_application(
    application: web.Application, bound: socket.socket, tls: TlsFiles | None
) -> Callable[[], Awaitable[None]]:
    """Serve a site on a bound socket until the returned function is called."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    context = None if tls is None else tls.following_context()
    await web.SockSite(runner, bound, backlog=BACKLOG, ssl_context=context).start()
    return runner.cleanup


def proxy_collector(sources: AdminSources) -> ProxyCollector:
    """The metrics of these sources."""
    return ProxyCollector(
        listeners=sources.listeners.all,
        buckets=sources.buckets,
        store=sources.topic,
        file_rejected=lambda: bool(sources.reload.problem),
        sinks=() if sources.usage is None else sources.usage.sinks,
        more=lambda note_excluded: _more_families(sources, note_excluded),
    )


def admin_site(sources: AdminSources) -> AdminSite:
    """The pages that show these sources."""
    return AdminSite(
        families=proxy_collector(sources).steps,
        # To list the open descriptors takes a millisecond for each thousand.
        process=lambda: process_families(sources.loop_lag),
        problems=sources.readiness.problems,
        warnings=sources.readiness.warnings,
        buckets=sources.buckets,
        time=asyncio.get_running_loop().time,
        certificates=sources.certificates.days_left,
        replication=sources.replication,
        console=sources.console.reply,
        guard=admin_guard(sources.settings),
    )


def _more_families(sources: AdminSources, note_excluded: NoteExcluded) -> Iterator[Metric | None]:
    now = asyncio.get_running_loop().time()
    replication = sources.listeners.replication
    lags = chain.from_iterable(gateway.connections.follower_lags() for gateway in replication)
    sharing = sources.sharing
    return chain(
        admission_families(sources.listeners.admitted, sources.listeners.max_connections),
        certificate_families(sources.certificates.days_left(), sources.certificates.ends()),
        rejection_families(sources.engines, now, note_excluded),
        replication_families(sources.replication(), lags, now),
        ()
        if sharing is None
        else sharing_families(sharing.instances, sharing.lag_seconds, sharing.degraded, sharing.failures),
    )
