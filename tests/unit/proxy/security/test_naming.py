"""Principals derived from certificates."""

import ssl
from pathlib import Path

import pytest

from proxy.quota.identity import ANONYMOUS
from proxy.security.naming import Naming, NoPrincipal
from proxy.security.settings import Principal
from tests.support.process.certificates import Authority

ALICE = "RULE:^.*CN=(alice).*$/$1/"


@pytest.fixture
def certificate(tmp_path: Path) -> bytes:
    signed = Authority(tmp_path).sign("alice", "alice")
    return ssl.PEM_cert_to_DER_cert(
        Path(signed.certificate).read_text().partition(ssl.PEM_FOOTER)[0] + ssl.PEM_FOOTER
    )


def test_rules_map_the_name_of_the_certificate(certificate: bytes) -> None:
    naming = Naming(Principal(source="tls", rules=ALICE))
    assert naming.by_certificate
    assert naming.principal(certificate) == "alice"
    assert naming.principal(None) == ANONYMOUS


@pytest.mark.parametrize("settings", [None, Principal(source="sasl")])
def test_without_rules_every_client_is_anonymous(certificate: bytes, settings: Principal | None) -> None:
    naming = Naming(settings)
    assert not naming.by_certificate
    assert naming.principal(certificate) == ANONYMOUS


def test_certificate_without_a_matching_rule_has_no_principal(certificate: bytes) -> None:
    naming = Naming(Principal(source="tls", rules="RULE:^bob$/bob/"))
    for shown in (certificate, b"not a certificate"):
        with pytest.raises(NoPrincipal):
            naming.principal(shown)
