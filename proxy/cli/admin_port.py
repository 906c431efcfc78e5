"""The admin port of a running proxy, as the commands read it."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any, Final

from proxy.errors import BadResponse, SettingsError, UpstreamUnavailable
from proxy.upstream.failures import explain

SECONDS: Final = 5.0
"""The timeout of a request."""
_BUCKETS: Final = "/api/quotas"
"""A page that users may give for the port."""


class AdminPort:
    """The admin port of a proxy."""

    def __init__(self, url: str, token: str | None = None, ca: str | None = None) -> None:
        """`url` is that of the port. `ca` is a file with the authorities for its certificate; None: those of
        the system. Raises SettingsError.
        """
        self.url: Final = url.rstrip("/").removesuffix(_BUCKETS)
        self._headers: Final = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            self._tls: Final = _context(ca) if url.startswith("https:") else None
        except OSError as error:
            why = "expected PEM" if isinstance(error, ssl.SSLError) else error.strerror
            raise SettingsError(f"cannot use --ca {ca}: {why}") from error

    def get(self, path: str, key: str) -> Any:
        """The value of a key in a page's JSON. Raises UpstreamUnavailable."""
        return self.values(path, key)[0]

    def values(self, path: str, key: str, **optional: Any) -> tuple[Any, ...]:
        """The value of a key in a page's JSON, then those of optional keys with their defaults: proxies of
        other versions may lack them. Raises UpstreamUnavailable.
        """
        request = urllib.request.Request(self.url + path, headers=self._headers)  # noqa: S310
        try:
            # The command accepts http and https only.
            with urllib.request.urlopen(request, timeout=SECONDS, context=self._tls) as response:  # noqa: S310
                page = json.load(response)
                return page[key], *(page.get(name, default) for name, default in optional.items())
        except urllib.error.HTTPError as error:
            said = _reason(error)
            error.close()
            hint = "; a token is required: set --token-file" if error.code == 401 else ""
            raise UpstreamUnavailable(f"{self.url} responds {error.code} {said}{hint}") from error
        except urllib.error.URLError as error:
            reason = error.reason if isinstance(error.reason, Exception) else error
            raise UpstreamUnavailable(self._advise(explain(reason, SECONDS))) from error
        except OSError as error:
            raise UpstreamUnavailable(self._advise(explain(error, SECONDS))) from error
        except (ValueError, KeyError, TypeError, http.client.HTTPException) as error:
            raise BadResponse(self._advise("the response is not from a quota proxy")) from error

    def _advise(self, why: str) -> str:
        return f"{self.url}: {why}; start the proxy, or set --admin to its admin port (admin.port)"


def _context(ca: str | None) -> ssl.SSLContext:
    """A context that verifies as those of connections to brokers do. Raises OSError.

    From 3.13 on, Python's default context rejects certificates without an authority key identifier.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(ca)
    return context


def _reason(error: urllib.error.HTTPError) -> str:
    """The proxy's own reason, else that of HTTP."""
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return error.reason
