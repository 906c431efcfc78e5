"""AdminServer: serves the admin site over HTTP or HTTPS.

Its libraries take 12 MiB, and a tenth of a second to import. They are imported when a client connects for the
first time, and after the ports for clients have opened. The admin port listens from the start: requests wait
in its backlog until the site is there.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from proxy.config.settings import Admin
from proxy.security.tls import TlsFiles
from proxy.server.admin_port.libraries import import_http_server
from proxy.server.admin_port.sources import AdminSources
from proxy.server.listener.accept.readable import until_readable
from proxy.server.listener.ports.broker_ports import listening
from proxy.server.listener.served import until_served
from proxy.server.system.garbage_collection import gc_paused
from proxy.upstream.addresses import join_address

log = logging.getLogger(__name__)
SITE_WAITS_SECONDS: Final = 0.5
"""The longest time for which the site waits until clients are served: without a broker, they are not."""
ServeSite = Callable[[AdminSources, socket.socket, TlsFiles | None], Awaitable[Callable[[], Awaitable[None]]]]
"""Serves the site on a listening socket, and returns what ends it."""


class AdminServer:
    """The port, and the site on it once serve() has built it."""

    def __init__(self, admin: Admin, tls: TlsFiles | None) -> None:
        """Listen. Raises PortInUse."""
        self._tls: Final = tls
        self._bound: Final = listening(admin.bind, admin.port, "admin.port: ")
        self._stop_site: Callable[[], Awaitable[None]] | None = None
        scheme = "http" if tls is None else "https"
        log.info("admin port: %s://%s", scheme, join_address(admin.bind, self._bound.getsockname()[1]))

    async def serve(self, sources: AdminSources, clients_served: Callable[[], bool]) -> None:
        """Build the site when a client connects; it is served until close()."""
        await until_served(clients_served, SITE_WAITS_SECONDS)
        await until_readable(asyncio.get_running_loop(), self._bound)
        # In a thread, so that clients are served meanwhile.
        serve_site = await asyncio.to_thread(_imported)
        self._stop_site = await serve_site(sources, self._bound, self._tls)

    async def close(self) -> None:
        """Close the port."""
        if self._stop_site is not None:
            await self._stop_site()
        self._bound.close()


def _imported() -> ServeSite:
    with gc_paused():
        import_http_server()
        from proxy.server.admin_port.site import serve_site

    return serve_site
