"""The admin site of the process.

Only admin_port imports this file, and late: aiohttp and prometheus_client take long to import.
"""

import socket
from collections.abc import Awaitable, Callable

from proxy.security.tls import TlsFiles
from proxy.server.admin_port.http import admin_guard, serve_application
from proxy.server.admin_port.metrics import proxy_collector
from proxy.server.admin_port.sources import AdminSources
from proxy.telemetry.http import AdminSite
from proxy.telemetry.metrics.families.process import process_families


async def serve_site(
    sources: AdminSources, bound: socket.socket, tls: TlsFiles | None
) -> Callable[[], Awaitable[None]]:
    """Serve the site on a bound socket until the returned function is called."""
    site = AdminSite(
        families=proxy_collector(sources).steps,
        # To list the open descriptors takes a millisecond for each thousand.
        process=lambda: process_families(sources.loop_lag),
        problems=sources.readiness.problems,
        warnings=sources.readiness.warnings,
        table=sources.table,
        certificates=sources.certificates.days_left,
        console=sources.console.reply,
        guard=admin_guard(sources.settings),
    )
    return await serve_application(site.application(), bound, tls)
