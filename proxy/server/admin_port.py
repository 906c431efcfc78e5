"""The admin port: serves the admin site over HTTP or HTTPS."""

import logging
from functools import partial

from aiohttp import web

from proxy.config.settings import Admin
from proxy.security.secrets import read_secret
from proxy.security.tls import TlsFiles
from proxy.server.listener.ports import BACKLOG, bind
from proxy.telemetry.guard import Guard
from proxy.telemetry.http import AdminSite

log = logging.getLogger(__name__)


def admin_guard(admin: Admin) -> Guard:
    """The access rules of the settings; the token is read at each request, so that it can be replaced."""
    token = partial(read_secret, admin.token_file, admin.token_env) if admin.has_token else None
    return Guard(admin.bind, token, by_certificate=admin.by_certificate)


async def serve_admin_port(site: AdminSite, admin: Admin, tls: TlsFiles | None) -> web.AppRunner:
    """Serve until the caller's cleanup(). Raises PortInUse."""
    runner = web.AppRunner(site.application(), access_log=None)
    await runner.setup()
    bound = bind(admin.bind, admin.port, "admin.port: ")
    context = None if tls is None else tls.following_context()
    await web.SockSite(runner, bound, backlog=BACKLOG, ssl_context=context).start()
    scheme = "http" if tls is None else "https"
    log.info("admin port: %s://%s:%d", scheme, admin.bind, bound.getsockname()[1])
    return runner
