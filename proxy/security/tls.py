"""SSL contexts built from the files of the settings, and rebuilt when a file changes.

Existing connections keep their context. Files that do not match, such as a new certificate before its key is
replaced, change nothing.
"""

import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from proxy.errors import KeyPath, SettingsError, spell
from proxy.security.der import BadCertificate, read_certificate
from proxy.security.settings import Tls, UpstreamTls
from proxy.security.tls_calls import call_directly

log = logging.getLogger(__name__)
CERTIFICATE_CHECK_SECONDS: Final = 1.0
"""Interval of the checks for a change."""
CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
KEY_EXCHANGE: Final = "prime256v1"
"""The group of key exchanges with clients, P-256, which TLS 1.3 makes mandatory. OpenSSL's default also has
groups of which one handshake takes 128 ms (ffdhe8192), and the client chooses. Python can set one group only.
"""
FileStates = tuple[tuple[int, ...] | None, ...]
"""The state of each file, which differs between any two versions of it; None: the file does not exist."""


class TlsFiles:
    """The files of one SSL context, and the context that is built from their current content.

    Raises SettingsError if the first context cannot be built.
    """

    def __init__(self, at: KeyPath, files: Mapping[str, str], build: Callable[[], ssl.SSLContext]) -> None:
        """`files` maps the keys below `at` to paths. `build` may raise OSError or ValueError."""
        self._at: Final = at
        self._files: Final = {name: Path(file) for name, file in files.items()}
        self._build: Final = build
        self._loaded = self._before = self._states()
        self.problem = ""
        """Why the current files are not used; empty if they are."""
        self.context = self._make()
        self.not_after: dict[str, float] = self._expiries()
        """Expiry of the first certificate of each file, in seconds since the epoch."""

    def following_context(self) -> ssl.SSLContext:
        """A context for a server that keeps one context: each handshake uses the current one."""
        context = self._make()

        def follow(connection: Any, name: str | None, context: ssl.SSLContext) -> None:
            connection.context = self.context

        context.sni_callback = follow
        return context

    def refresh(self) -> None:
        """Check the files. A change is applied at the second check that finds the same files."""
        states = self._states()
        if states == self._before and states != self._loaded:
            self._loaded = states
            try:
                self.context = self._make()
                self.not_after = self._expiries()
                self.problem = ""
                log.info("%s: reloaded; new connections use the changed files", spell(self._at))
            except SettingsError as error:
                self.problem = f"{error}; keeping the previous files"
                log.error("%s", self.problem)
        self._before = states

    def _make(self) -> ssl.SSLContext:
        for name, file in self._files.items():
            try:
                file.read_bytes()
            except OSError as error:
                raise SettingsError(f"cannot read {file}: {error.strerror}", (*self._at, name)) from error
        try:
            return self._build()
        except (OSError, ValueError) as error:
            files = " and ".join(str(file) for file in self._files.values())
            raise SettingsError(f"cannot use {files}: {_why(error)}", self._at) from error

    def _expiries(self) -> dict[str, float]:
        expiries: dict[str, float] = {}
        for name, file in self._files.items():
            if name in ("certificate", "ca", "client_ca"):
                pem = file.read_text(encoding="latin-1").partition(ssl.PEM_FOOTER)[0]
                start = pem.find(ssl.PEM_HEADER)
                try:
                    der = ssl.PEM_cert_to_DER_cert(pem[start:] + ssl.PEM_FOOTER)
                    expiries[str(file)] = read_certificate(der).not_after
                except (BadCertificate, ValueError) as error:
                    log.warning("%s: cannot read the expiry of its first certificate: %s", file, error)
        return expiries

    def _states(self) -> FileStates:
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
        return "the key does not match the certificate"
    if isinstance(error, ssl.SSLError) and reason in (None, "NO_CERTIFICATE_OR_CRL_FOUND", "NO_START_LINE"):
        return "expected PEM"
    return str(error)


def _no_password() -> str:
    raise ValueError("the key is encrypted; store it without a password")


def server_tls(tls: Tls, at: KeyPath) -> TlsFiles:
    """TLS of a listener or of the admin port; `at` is the key of the settings in the file."""

    # Imported here, because a supervisor of workers imports this file, and nothing that serves clients.
    from proxy.security.alerts import ServerContext

    def build() -> ssl.SSLContext:
        context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
        _harden(context)
        context.set_ecdh_curve(KEY_EXCHANGE)
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
    """TLS to brokers; `at` is the key of the settings in the file."""

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
    """Requests and verifies `server_name`, if set, instead of the host that it connects to."""

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
        return call_directly(super().wrap_bio(incoming, outgoing, server_side, name, session))


def _note_server_name(connection: Any, name: str | None, context: ssl.SSLContext) -> None:
    connection.server_name_asked = name or ""


def server_name(connection: Any) -> str:
    """The server name (SNI) that the client of a server_tls() connection requested; empty if none."""
    name: str = getattr(connection, "server_name_asked", "")
    return name
