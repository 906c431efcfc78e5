"""TLS and login of the connections to brokers: the file of --access, for this process and for Spark's source.

The file has the keys `tls` and `sasl` of `upstream` in the proxy's configuration, as the file for
`quota-proxy quotas --access`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import Struct

from pipeline.errors import InputError
from pipeline.inputs.documents import convert, read_yaml
from proxy.errors import SettingsError, UpstreamUnavailable
from proxy.security.access import Access
from proxy.security.secrets import read_secret
from proxy.security.settings import UpstreamSasl, UpstreamTls, check_upstream, in_folder

_SECURITY: Final = "org.apache.kafka.common.security"
_MODULES: Final = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
}


class _File(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    tls: UpstreamTls | None = None
    sasl: UpstreamSasl | None = None


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """How to connect to brokers; by default over plaintext and without a login."""

    tls: UpstreamTls | None = None
    sasl: UpstreamSasl | None = None

    def of_this_process(self) -> Access:
        """Return the access for connections of this process. Raises InputError."""
        try:
            return Access(self.tls, self.sasl)
        except SettingsError as error:
            raise InputError(f"--access: {error}") from error

    def of_java(self) -> tuple[tuple[str, str], ...]:
        """Return the settings of Kafka's Java client. Certificates and secrets are read now, so that workers
        of Spark need no files. Raises InputError.
        """
        if self.tls is None and self.sasl is None:
            return ()
        protocol = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")[
            (self.tls is not None) + 2 * (self.sasl is not None)
        ]
        found = {"security.protocol": protocol}
        if self.tls is not None:
            found.update(_java_tls(self.tls))
        if self.sasl is not None:
            found.update(_java_sasl(self.sasl))
        return tuple(found.items())


PLAINTEXT: Final = BrokerAccess()


def read_access(path: Path) -> BrokerAccess:
    """Read the file of --access; paths in it are relative to its folder. Raises InputError."""
    value = read_yaml(path)
    given = convert({} if value is None else value, _File, path)
    try:
        check_upstream(given.tls, given.sasl, ())
    except SettingsError as error:
        raise InputError(f"{path}: {error}") from error
    folder = path.absolute().parent
    return BrokerAccess(
        None if given.tls is None else in_folder(given.tls, folder),
        None if given.sasl is None else in_folder(given.sasl, folder),
    )


def _java_tls(tls: UpstreamTls) -> dict[str, str]:
    """Return the settings of Kafka's Java client for TLS. Raises InputError."""
    found: dict[str, str] = {}
    if tls.server_name is not None:
        raise InputError(
            "--access: tls.server_name: Spark's Kafka source can verify only the host's own name"
        )
    if tls.ca is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _content(tls.ca)}
    if tls.certificate is not None and tls.key is not None:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _content(tls.certificate),
            "ssl.keystore.key": _content(tls.key),
        }
    if not tls.verify_host_name:
        found["ssl.endpoint.identification.algorithm"] = ""
    return found


def _java_sasl(sasl: UpstreamSasl) -> dict[str, str]:
    """Return the settings of Kafka's Java client for the login. Raises InputError."""
    if sasl.mechanism not in _MODULES:
        raise InputError(
            f"--access: sasl.mechanism: set {sasl.mechanism} with --kafka for Spark's Kafka source"
        )
    try:
        secret = read_secret(sasl.password_file, sasl.password_env)
    except UpstreamUnavailable as error:
        raise InputError(f"--access: {error}") from error
    login = f"username={_quoted(sasl.username or '')} password={_quoted(secret)}"
    return {
        "sasl.mechanism": sasl.mechanism,
        "sasl.jaas.config": f"{_MODULES[sasl.mechanism]} required {login};",
    }


def _quoted(text: str) -> str:
    """Return a value of a JAAS configuration, in quotes and with escapes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _content(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"--access: {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--access: {file} is not in PEM format") from error
