"""Guard: decides which requests the admin port serves.

On a loopback address, reading needs no credentials. On other addresses, and for requests that change
something, a client needs the token, or a certificate that the TLS handshake has verified. Without them,
/healthz and /readyz respond with their status only, and the page, which has no data of its own, shows a form
for the token.

A browser on this host can reach the loopback address, too. If a page of another site has a name that its
owner lets resolve to 127.0.0.1 (DNS rebinding), the browser takes the admin port for that site, and the
page could read it. Such a request has the site's name in its Host header. Therefore a request without
credentials must name the loopback address, another IP address, or a name in `admin.hosts`.
"""

import hmac
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from proxy.security.host_patterns import canonical, ip_of
from proxy.security.loopback import is_loopback
from proxy.security.secrets import SecretMissing
from proxy.telemetry.page.files import FILES

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
READING: Final = ("GET", "HEAD")
"""Methods that change nothing."""
SCHEME: Final = "bearer "
LOCALHOST: Final = "localhost"
"""Browsers resolve this name, and those that end in `.localhost`, without DNS."""
_HOST_AND_PORT: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+))(?::\d*)?")
ADMIN_PORT: Final = "admin-port"
"""The author of changes by clients with the token."""
OPEN: Final = ("/healthz", "/readyz", *FILES)
"""Paths that are served to every client, without details if allows() is false."""


class Guard:
    """The access rules of one admin port."""

    def __init__(
        self,
        bind: str,
        token: Callable[[], str] | None,
        *,
        by_certificate: bool = False,
        hosts: Iterable[str] = (),
    ) -> None:
        """`token` returns the expected token or raises SecretMissing; None if no token is configured.
        `by_certificate`: whether the TLS handshake rejects clients without a certificate.
        `hosts`: names that requests without credentials may have in their Host header.
        """
        self._open: Final = is_loopback(bind)
        self._token: Final = token
        self._by_certificate: Final = by_certificate
        self._hosts: Final = frozenset(canonical(host) for host in hosts)

    def allows(self, request: web.Request) -> bool:
        """Whether the client may have what it requests."""
        if self._by_certificate or (self._needs_nothing(request) and self._is_expected(request)):
            return True
        return self._token is not None and self._has_token(request, self._token)

    def _needs_nothing(self, request: web.Request) -> bool:
        """Whether every client on this host may have it."""
        return self._open and request.method in READING

    def _is_expected(self, request: web.Request) -> bool:
        """Whether the Host header is an address or a name that DNS cannot rebind, or in `admin.hosts`."""
        shown = request.headers.get("Host")
        if shown is None:
            return True  # every browser sends it
        parts = _HOST_AND_PORT.fullmatch(shown)
        host = "" if parts is None else canonical(parts[1] or parts[2])
        local = host == LOCALHOST or host.endswith(f".{LOCALHOST}")
        return local or ip_of(host) is not None or host in self._hosts

    @staticmethod
    def _has_token(request: web.Request, token: Callable[[], str]) -> bool:
        shown = request.headers.get("Authorization", "")
        if not shown.lower().startswith(SCHEME):
            return False
        try:
            wanted = token()
        except SecretMissing:
            return False
        # aiohttp decodes bytes that are not UTF-8 as surrogates.
        token_shown = shown[len(SCHEME) :].encode(errors="surrogateescape")
        return hmac.compare_digest(token_shown, wanted.encode())

    def middleware(self) -> Middleware:
        """The guard as middleware of an aiohttp application."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            is_open = request.path in OPEN and request.method in READING
            if is_open or self.allows(request):
                return await handler(request)
            if self._needs_nothing(request):
                problem = "the host in the URL is neither localhost nor an IP address nor in admin.hosts"
            else:
                problem = "changes need a token, and none is configured: set admin.token_file, then restart"
            if self._token is None:
                # No client can send a token that does not exist, so the page must not ask for it.
                return web.json_response({"error": problem}, status=403)
            problem = "send the header Authorization: Bearer TOKEN"
            return web.json_response({"error": problem}, status=401, headers={"WWW-Authenticate": "Bearer"})

        return guard


def author_of(request: web.Request) -> str:
    """Who changes a quota, for the audit log: the common name of the client's certificate, or ADMIN_PORT."""
    certificate = None if request.transport is None else request.transport.get_extra_info("peercert")
    for part in (certificate or {}).get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return ADMIN_PORT
