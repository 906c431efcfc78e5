"""The admin port as a server of HTTP: access rules, and a site on a bound socket.

It is imported late: aiohttp takes long to import.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from aiohttp import web

from proxy.config.settings import Admin
from proxy.security.secrets import read_secret
from proxy.security.tls import TlsFiles
from proxy.server.listener.ports.broker_ports import BACKLOG
from proxy.telemetry.guard import Guard

CONNECTIONS: Final = 128
"""Connections that may be open at a time. They use descriptors that clients and brokers need, too."""
HANDSHAKE_SECONDS: Final = 10.0


def admin_guard(admin: Admin) -> Guard:
    """The access rules of the settings; the token is read at each request, so that it can be replaced."""
    token = partial(read_secret, admin.token_file, admin.token_env) if admin.has_token else None
    return Guard(admin.bind, token, by_certificate=admin.by_certificate, hosts=admin.hosts)


async def serve_application(
    application: web.Application, bound: socket.socket, tls: TlsFiles | None
) -> Callable[[], Awaitable[None]]:
    """Serve a site on a bound socket until the returned function is called."""
    # Nobody has to compress a request; aiohttp would decompress it before the access rules apply.
    runner = web.AppRunner(application, access_log=None, auto_decompress=False)
    await runner.setup()
    served = runner.server
    assert served is not None, "it has been set up"
    context = None if tls is None else tls.following_context()
    server = await asyncio.get_running_loop().create_server(
        partial(_accept, served),
        sock=bound,
        backlog=BACKLOG,
        ssl=context,
        ssl_handshake_timeout=None if context is None else HANDSHAKE_SECONDS,
    )

    async def stop() -> None:
        server.close()
        await runner.cleanup()

    return stop


def _accept(served: web.Server) -> asyncio.Protocol:
    """Accept a connection. Beyond CONNECTIONS, it replaces the oldest one, which may never send a request."""
    connections = served.connections
    for connection in connections[: max(len(connections) + 1 - CONNECTIONS, 0)]:
        connection.force_close()
    return served()
