"""Certificates made by `cryptography`: their subject and expiry."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from proxy.security.der import BadCertificate, read_certificate, read_values
from proxy.security.distinguished_name import spell


def certificate(not_after: datetime.datetime, *, organization: str = "O" * 200) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization[:64]),
            x509.NameAttribute(NameOID.COMMON_NAME, "alice"),
            x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c"),
        ]
    )
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    builder = x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number())
    made = builder.not_valid_before(datetime.datetime(2020, 1, 1)).not_valid_after(not_after)
    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize("year", [2049, 2050, 2021])
def test_subject_and_end(year: int) -> None:
    end = datetime.datetime(year, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)
    read = read_certificate(certificate(end))
    assert read.not_after == end.timestamp()
    assert spell(read.subject) == f"1.2.840.113549.1.9.1=#16056140622e63,CN=alice,O={'O' * 64}"


@pytest.mark.parametrize("cut", [0, 1, 3, 40, 200])
def test_truncated_certificate_is_rejected(cut: int) -> None:
    whole = certificate(datetime.datetime(2049, 1, 1))
    with pytest.raises(BadCertificate):
        read_certificate(whole[:cut])


def test_value_longer_than_its_container_is_rejected() -> None:
    with pytest.raises(ValueError, match="longer"):
        read_values(b"\x30\x05\x00")
