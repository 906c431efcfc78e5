"""Guard: who may see the admin port's pages.

On a loopback address everybody may read. Elsewhere, and for what changes anything, a token is wanted, or a
certificate, which the TLS handshake has then asked for. Without, /readyz says no more than whether.
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from proxy.security.loopback import is_loopback
from proxy.security.secrets import SecretMissing

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
READING: Final = ("GET", "HEAD")
SCHEME: Final = "bearer "
PROBES: Final = ("/healthz", "/readyz")
"""Pages that answer everybody, and say to whom allows() rejects no more than whether."""


class Guard:
    """For the admin port of one process."""

    def __init__(self, bind: str, token: Callable[[], str] | None, *, by_certificate: bool = False) -> None:
        """`token` gives the one that clients have to show, and raises SecretMissing; None: there is none.
        `by_certificate`: whether nobody gets this far without a certificate.
        """
        self._open: Final = is_loopback(bind)
        self._token: Final = token
        self._by_certificate: Final = by_certificate

    def allows(self, request: web.Request) -> bool:
        """Whether a request may be answered."""
        if self._by_certificate or (self._open and request.method in READING):
            return True
        return self._token is not None and self._shows(request, self._token)

    @staticmethod
    def _shows(request: web.Request, token: Callable[[], str]) -> bool:
        shown = request.headers.get("Authorization", "")
        if not shown.lower().startswith(SCHEME):
            return False
        try:
            wanted = token()
        except SecretMissing:
            return False
        return hmac.compare_digest(shown[len(SCHEME) :].encode(), wanted.encode())

    def middleware(self) -> Middleware:
        """For aiohttp's application."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            probe = request.path in PROBES and request.method in READING
            if probe or self.allows(request):
                return await handler(request)
            wanted = "Authorization: Bearer TOKEN is wanted here"
            if self._token is None:
                wanted = "this takes a token, and admin.token_file names none"
            return web.json_response({"error": wanted}, status=401, headers={"WWW-Authenticate": "Bearer"})

        return guard
