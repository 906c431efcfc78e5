"""The certificate of the peers that end TLS."""

import shutil
import ssl
from pathlib import Path

import pytest

from bench.peers.peer import Unavailable
from bench.peers.tls import make_certificate


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_certificate_is_made_once_and_verifies_localhost(tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    both = made.both.read_bytes()
    assert both == made.certificate.read_bytes() + made.key.read_bytes()
    assert make_certificate(tmp_path) == made
    assert made.both.read_bytes() == both
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made.both)
    client = ssl.create_default_context(cafile=str(made.certificate))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    peer = ends[0].getpeercert()
    assert peer is not None
    assert peer["subjectAltName"] == (("DNS", "localhost"),)


def test_a_machine_without_openssl_cannot_run_the_peer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda command: None)
    with pytest.raises(Unavailable, match="openssl"):
        make_certificate(tmp_path)
