"""Certificates for tests: a certificate authority, and the certificates that it signs, as PEM files.

They have the extensions that Python's default context requires from Python 3.13 on (VERIFY_X509_STRICT).
"""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAYS: Final = 100
_SIGNS_CERTIFICATES: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
HOSTS: Final = ("127.0.0.1", "localhost", "kafka.test", "*.kafka.test")


class Signed:
    """The files of a certificate and its key."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate: Final = str(certificate)
        self.key: Final = str(key)

    @property
    def both(self) -> str:
        """A file with both, which is the format of Kafka's PEM keystores."""
        file = Path(self.certificate).with_suffix(".both.pem")
        file.write_text(Path(self.key).read_text() + Path(self.certificate).read_text())
        return str(file)


class Authority:
    """Signs certificates; `ca` is the file with its own."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name([(NameOID.COMMON_NAME, name)])
        public = self._key.public_key()
        certificate = (
            _build(self._name, self._name, public, DAYS, ca=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(_SIGNS_CERTIFICATES, critical=True)
        )
        self.ca: Final = str(folder / f"{name}.pem")
        signed = certificate.sign(self._key, hashes.SHA256())
        Path(self.ca).write_bytes(signed.public_bytes(Encoding.PEM))

    def sign(
        self,
        file: str,
        common_name: str = "proxy",
        hosts: Sequence[str] = HOSTS,
        *,
        unit: str = "tests",
        days: float = DAYS,
    ) -> Signed:
        """Sign a certificate for CN=`common_name`,OU=`unit` and these hosts; its files are called `file`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name([(NameOID.ORGANIZATIONAL_UNIT_NAME, unit), (NameOID.COMMON_NAME, common_name)])
        builder = _build(subject, self._name, key.public_key(), days, ca=False)
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(names, critical=False).add_extension(issuer, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        signed = Signed(self._folder / f"{file}.pem", self._folder / f"{file}.key")
        # The key is written first: the proxy would reject a certificate that does not match the key.
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        Path(signed.key).write_bytes(secret)
        Path(signed.certificate).write_bytes(certificate.public_bytes(Encoding.PEM))
        return signed


def _name(attributes: Sequence[tuple[x509.ObjectIdentifier, str]]) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in attributes])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _build(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float, *, ca: bool
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
