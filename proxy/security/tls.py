"""SSL contexts out of the settings' files, made anew when a file changes.

Connections that are there keep what they were made with. Files that do not fit together, as while one is
replaced and the other not yet, change nothing.
"""

import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from proxy.errors import KeyPath, SettingsError, spell
from proxy.security.alerts import ServerContext
from proxy.security.der import BadCertificate, read_certificate
from proxy.security.settings import Tls, UpstreamTls

log = logging.getLogger(__name__)
POLL_SECONDS: Final = 1.0
"""How often the files are looked at."""
CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
Seen = tuple[tuple[int, ...] | None, ...]


class TlsFiles:
    """The context in force. Raises SettingsError where there is none to begin with."""

    def __init__(self, at: KeyPath, files: Mapping[str, str], build: Callable[[], ssl.SSLContext]) -> None:
        """`files` by their keys below `at`; `build` raises OSError or ValueError."""
        self._at: Final = at
        self._files: Final = {name: Path(file) for name, file in files.items()}
        self._build: Final = build
        self._taken = self._before = self._seen()
        self.problem = ""
        """Why the files, as they are now, are not in force; empty when they are."""
        self.context = self._made()
        self.not_after: dict[str, float] = self._ends()
        """By file: when its first certificate ends, seconds since the epoch."""

    def following_context(self) -> ssl.SSLContext:
        """A context for somebody who keeps one for good: each connection gets the one in force."""
        context = self._made()

        def follow(connection: Any, name: str | None, context: ssl.SSLContext) -> None:
            connection.context = self.context

        context.sni_callback = follow
        return context

    def refresh(self) -> None:
        """Look at the files. A change counts once they are left alone for a moment."""
        seen = self._seen()
        if seen == self._before and seen != self._taken:
            self._taken = seen
            try:
                self.context = self._made()
                self.not_after = self._ends()
                self.problem = ""
                log.info("%s: the files have changed; new connections use them", spell(self._at))
            except SettingsError as error:
                self.problem = f"{error}; the files loaded before stay in force"
                log.error("%s", self.problem)
        self._before = seen

    def _made(self) -> ssl.SSLContext:
        for name, file in self._files.items():
            try:
                file.read_bytes()
            except OSError as error:
                raise SettingsError(f"{file} cannot be read: {error.strerror}", (*self._at, name)) from error
        try:
            return self._build()
        except (OSError, ValueError) as error:
            files = " and ".join(str(file) for file in self._files.values())
            raise SettingsError(f"{files} cannot be used: {_why(error)}", self._at) from error

    def _ends(self) -> dict[str, float]:
        ends: dict[str, float] = {}
        for name, file in self._files.items():
            if name in ("certificate", "ca", "client_ca"):
                pem = file.read_text(encoding="latin-1").partition(ssl.PEM_FOOTER)[0]
                start = pem.find(ssl.PEM_HEADER)
                try:
                    der = ssl.PEM_cert_to_DER_cert(pem[start:] + ssl.PEM_FOOTER)
                    ends[str(file)] = read_certificate(der).not_after
                except (BadCertificate, ValueError) as error:
                    log.warning("%s: when it ends cannot be read: %s", file, error)
        return ends

    def _seen(self) -> Seen:
        return tuple(_state(file) for file in self._files.values())


def _state(file: Path) -> tuple[int, ...] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if reason == "KEY_VALUES_MISMATCH":
        return "the key is not the certificate's"
    if isinstance(error, ssl.SSLError) and reason in (None, "NO_CERTIFICATE_OR_CRL_FOUND", "NO_START_LINE"):
        return "expected PEM"
    return str(error)


def _no_password() -> str:
    raise ValueError("the key is encrypted; the proxy takes one that is not")


def server_tls(tls: Tls, at: KeyPath) -> TlsFiles:
    """A listener's TLS; `at` is where the settings stand in the file."""

    def build() -> ssl.SSLContext:
        context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
        _harden(context)
        context.load_cert_chain(tls.certificate, tls.key, _no_password)
        context.sni_callback = _note_server_name
        if tls.client_ca is not None:
            context.load_verify_locations(tls.client_ca)
        context.verify_mode = CLIENT_AUTH[tls.client_auth]
        return context

    files = {"certificate": tls.certificate, "key": tls.key}
    if tls.client_ca is not None:
        files["client_ca"] = tls.client_ca
    return TlsFiles(at, files, build)


def client_tls(tls: UpstreamTls, at: KeyPath) -> TlsFiles:
    """TLS towards brokers."""

    def build() -> ssl.SSLContext:
        context = _ClientContext(ssl.PROTOCOL_TLS_CLIENT)
        _harden(context)
        context.server_name = tls.server_name
        context.check_hostname = tls.verify_host_name
        if tls.ca is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(tls.ca)
        if tls.certificate is not None:
            context.load_cert_chain(tls.certificate, tls.key, _no_password)
        return context

    files = {"ca": tls.ca, "certificate": tls.certificate, "key": tls.key}
    return TlsFiles(at, {name: file for name, file in files.items() if file is not None}, build)


def _harden(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION


class _ClientContext(ssl.SSLContext):
    """Asks for, and checks, one name at whichever host."""

    server_name: str | None = None

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        name = self.server_name or server_hostname
        return super().wrap_bio(incoming, outgoing, server_side, name, session)


def _note_server_name(connection: Any, name: str | None, context: ssl.SSLContext) -> None:
    connection.server_name_asked = name or ""


def server_name(connection: Any) -> str:
    """The name in the hello of a connection of server_tls(); empty where there was none."""
    name: str = getattr(connection, "server_name_asked", "")
    return name
