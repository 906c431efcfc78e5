"""`quota-proxy top`: the buckets of a running proxy as a table, throttled ones first."""

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from proxy.cli.quotas.entity import show_name
from proxy.cli.quotas.output import NOTHING, columns
from proxy.errors import SettingsError, UpstreamUnavailable
from proxy.upstream.failures import explain

if TYPE_CHECKING:
    from rich.console import Console

Bucket = Mapping[str, Any]
"""An object of /api/quotas."""
PAGE: Final = "/api/quotas"
SECONDS: Final = 5.0
"""Timeout of a request to the admin port."""
HEAD: Final = ("QUOTA", "ENTITY", "BROKER", "LIMIT/S", "NOW/S", "USED", "WAITED", "STATE")
_AROUND: Final = 3
"""Lines of the screen without a bucket: the head, the summary and the cursor."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


class AdminPort:
    """The admin port of a proxy."""

    def __init__(self, url: str, token: str | None = None, ca: str | None = None) -> None:
        """`url` is that of the port. `ca` is a file with the authorities for its certificate; None: those of
        the system. Raises SettingsError.
        """
        self.url: Final = url.rstrip("/").removesuffix(PAGE)
        self._headers: Final = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            self._tls: Final = ssl.create_default_context(cafile=ca) if url.startswith("https:") else None
        except OSError as error:
            why = "expected PEM" if isinstance(error, ssl.SSLError) else error.strerror
            raise SettingsError(f"cannot use --ca {ca}: {why}") from error

    def buckets(self) -> list[Bucket]:
        """The current buckets. Raises UpstreamUnavailable."""
        found: list[Bucket] = self.get(PAGE, "quotas")
        return found

    def get(self, path: str, key: str) -> Any:
        """The value of a key in a page's JSON. Raises UpstreamUnavailable."""
        request = urllib.request.Request(self.url + path, headers=self._headers)  # noqa: S310
        try:
            # The command accepts http and https only.
            with urllib.request.urlopen(request, timeout=SECONDS, context=self._tls) as response:  # noqa: S310
                return json.load(response)[key]
        except urllib.error.HTTPError as error:
            said = _reason(error)
            error.close()
            hint = "; a token is required: set --token-file" if error.code == 401 else ""
            raise UpstreamUnavailable(f"{self.url} responds {error.code} {said}{hint}") from error
        except urllib.error.URLError as error:
            reason = error.reason if isinstance(error.reason, Exception) else error
            raise self._unreachable(explain(reason, SECONDS)) from error
        except OSError as error:
            raise self._unreachable(explain(error, SECONDS)) from error
        except (ValueError, KeyError, TypeError, http.client.HTTPException) as error:
            raise self._unreachable("the response is not from a quota proxy") from error

    def _unreachable(self, why: str) -> UpstreamUnavailable:
        return UpstreamUnavailable(f"{self.url}: {why}; set --admin to the proxy's admin port (admin.port)")


def _reason(error: urllib.error.HTTPError) -> str:
    """The proxy's own reason, else that of HTTP."""
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return error.reason


def lines(buckets: Sequence[Bucket], most: int | None = None) -> list[str]:
    """Return the table, with at most `most` buckets, and a summary line."""
    shown = sorted(buckets, key=_place)
    if most is not None:
        shown = shown[: max(most, 0)]
    throttled = sum(bool(bucket["throttled"]) for bucket in buckets)
    rest = len(buckets) - len(shown)
    summary = f"{len(buckets)} buckets, {throttled} throttled"
    return [*columns(HEAD, map(_row, shown)), summary + (f"; {rest} are not shown" if rest else "")]


def _row(bucket: Bucket) -> list[str]:
    kind = bucket["kind"]
    broker = bucket["broker"]
    entity = ", ".join(f"{part} {show_name(str(name))}" for part, name in bucket["entity"].items())
    state = "throttled" if bucket["throttled"] else ""
    if bucket["mode"] == "observe":
        state = f"would be {state}" if state else "observed"
    return [
        kind,
        entity or NOTHING,
        NOTHING if broker is None else str(broker),
        _amount(kind, bucket["limit"]),
        _amount(kind, bucket["rate"]),
        f"{_used(bucket):.0%}",
        f"{bucket['throttle_seconds']:.1f} s",
        state,
    ]


def _place(bucket: Bucket) -> tuple[bool, float, str]:
    """Sort key: throttled buckets first, then by the used part of the limit."""
    return not bucket["throttled"], -_used(bucket), str(bucket["entity"])


def _used(bucket: Bucket) -> float:
    """The rate as a part of the limit."""
    limit = float(bucket["limit"])
    return float(bucket["rate"]) / limit if limit > 0.0 else 0.0


def _amount(kind: str, value: float) -> str:
    """Format a limit or a rate: bytes with a unit, others as a number."""
    if "byte" not in kind and "replication" not in kind:
        return f"{value:.4g}"
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} {_UNITS[-1]}"


def show(port: AdminPort, console: "Console") -> None:
    """Print the table once. Raises UpstreamUnavailable."""
    for line in lines(port.buckets()):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def follow(
    port: AdminPort, console: "Console", interval: float, pause: Callable[[float], None] = time.sleep
) -> None:
    """Show the table on the whole screen, and update it every `interval` seconds until `pause` raises
    KeyboardInterrupt.

    Raises UpstreamUnavailable if the first request fails; later requests are retried.
    """
    from rich.live import Live
    from rich.text import Text

    text = "\n".join(lines(port.buckets(), console.height - _AROUND))
    with Live(Text(text), console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)
                pause(interval)
                try:
                    text = "\n".join(lines(port.buckets(), console.height - _AROUND))
                except UpstreamUnavailable as error:
                    text = f"{error}\nRetrying every {interval:g} s; Ctrl-C exits."
        except KeyboardInterrupt:
            return
