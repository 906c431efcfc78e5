"""Contexts out of files: what they reject, and that they follow the files."""

import contextlib
import errno
import os
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from proxy.errors import KeyPath, SettingsError
from proxy.security.settings import Tls, UpstreamTls
from proxy.security.tls import TlsFiles, client_tls, server_name, server_tls
from tests.support.process.certificates import Authority

AT = ("listeners", 0, "tls")
HOSTNAME_MISMATCH = 62
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def meet(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "localhost") -> tuple[Any, Any]:
    """Shake hands over memory; both sides' SSLObjects."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = server.wrap_bio(to_server, to_client, server_side=True)
    other = client.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(6):
        for side in (other, one):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return one, other


def test_they_meet_and_the_server_knows_whom_the_client_wants(authority: Authority) -> None:
    signed = authority.sign("proxy")
    server = server_tls(Tls(certificate=signed.certificate, key=signed.key), AT)
    client = client_tls(UpstreamTls(ca=authority.ca), AT)
    one, other = meet(server.context, client.context)
    assert other.version() == "TLSv1.3"
    assert server_name(one) == "localhost"
    assert one.getpeercert(binary_form=True) is None


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(("group", "meets"), [("prime256v1", True), ("secp521r1", False), ("X25519", False)])
def test_a_client_cannot_choose_an_expensive_key_exchange(
    authority: Authority, version: ssl.TLSVersion, group: str, meets: bool
) -> None:
    signed = authority.sign("proxy")
    server = server_tls(Tls(certificate=signed.certificate, key=signed.key), AT)
    client = ssl.create_default_context(cafile=authority.ca)
    client.minimum_version = client.maximum_version = version
    client.set_ecdh_curve(group)
    if meets:
        assert meet(server.context, client)[1].version() is not None
    else:
        with pytest.raises(ssl.SSLError):
            meet(server.context, client)


@pytest.mark.parametrize(
    ("settings", "accepted"),
    [
        ({}, False),
        ({"verify_host_name": False}, True),
        ({"server_name": "localhost"}, True),
    ],
)
def test_the_name_of_a_host(authority: Authority, settings: dict[str, Any], accepted: bool) -> None:
    signed = authority.sign("proxy")
    server = server_tls(Tls(certificate=signed.certificate, key=signed.key), AT)
    client = client_tls(UpstreamTls(ca=authority.ca, **settings), AT)
    if accepted:
        meet(server.context, client.context, "somewhere.else")
        return
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        meet(server.context, client.context, "somewhere.else")
    assert caught.value.verify_code == HOSTNAME_MISMATCH


def test_a_client_s_certificate(authority: Authority) -> None:
    signed, alice = authority.sign("proxy"), authority.sign("alice", "alice")
    tls = Tls(certificate=signed.certificate, key=signed.key, client_ca=authority.ca, client_auth="required")
    server = server_tls(tls, AT)
    known = UpstreamTls(ca=authority.ca, certificate=alice.certificate, key=alice.key)
    one, _ = meet(server.context, client_tls(known, AT).context)
    assert one.getpeercert()["subject"][1][0] == ("commonName", "alice")
    with pytest.raises(ssl.SSLError) as caught:
        meet(server.context, client_tls(UpstreamTls(ca=authority.ca), AT).context)
    assert caught.value.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE"


def test_tls_1_1_is_disabled(authority: Authority) -> None:
    signed = authority.sign("proxy")
    context = server_tls(Tls(certificate=signed.certificate, key=signed.key), AT).context
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("change", "key", "says"),
    [
        ({"certificate": "missing.pem"}, (*AT, "certificate"), os.strerror(errno.ENOENT)),
        ({"key": "other.key"}, AT, "does not match"),
        ({"certificate": "other.key"}, AT, "PEM"),
    ],
)
def test_unusable_file_is_rejected(
    authority: Authority, tmp_path: Path, change: dict[str, str], key: KeyPath, says: str
) -> None:
    signed = authority.sign("proxy")
    authority.sign("other")
    files: dict[str, Any] = {"certificate": signed.certificate, "key": signed.key}
    files.update({name: str(tmp_path / file) for name, file in change.items()})
    with pytest.raises(SettingsError, match=says) as caught:
        server_tls(Tls(**files), AT)
    assert caught.value.key == key
    assert all(str(tmp_path / file) in caught.value.expected for file in change.values())


def refresh_twice(files: TlsFiles) -> None:
    files.refresh()
    files.refresh()


def test_replaced_files_are_loaded(authority: Authority) -> None:
    signed = authority.sign("proxy", days=10)
    files = server_tls(Tls(certificate=signed.certificate, key=signed.key), AT)
    before, end = files.context, files.not_after[signed.certificate]
    refresh_twice(files)
    assert files.context is before
    authority.sign("proxy", days=20)
    refresh_twice(files)
    assert files.context is not before
    assert files.not_after[signed.certificate] > end + 9 * 86400
    assert files.problem == ""


def test_following_context_uses_replaced_files(authority: Authority) -> None:
    signed = authority.sign("proxy")
    files = server_tls(Tls(certificate=signed.certificate, key=signed.key), AT)
    kept = files.following_context()
    client = client_tls(UpstreamTls(ca=authority.ca), AT).context
    shown = []
    for _ in range(2):
        _, other = meet(kept, client)
        shown.append(other.getpeercert(binary_form=True))
        authority.sign("proxy")
        refresh_twice(files)
    assert shown[0] != shown[1]


def test_certificate_without_its_key_changes_nothing(authority: Authority) -> None:
    signed, other = authority.sign("proxy"), authority.sign("other")
    files = server_tls(Tls(certificate=signed.certificate, key=signed.key), AT)
    before = files.context
    Path(signed.certificate).write_bytes(Path(other.certificate).read_bytes())
    refresh_twice(files)
    assert files.context is before
    assert files.problem.startswith("listeners[0].tls: ")
    Path(signed.key).write_bytes(Path(other.key).read_bytes())
    refresh_twice(files)
    assert files.context is not before
    assert files.problem == ""


def test_encrypted_key_is_rejected_without_a_prompt(authority: Authority, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    signed = authority.sign("proxy")
    key = load_pem_private_key(Path(signed.key).read_bytes(), None)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    Path(signed.key).write_bytes(secret)
    with pytest.raises(SettingsError, match="encrypted") as caught:
        server_tls(Tls(certificate=signed.certificate, key=signed.key), AT)
    assert signed.key in caught.value.expected


def test_real_sockets(authority: Authority) -> None:
    signed = authority.sign("proxy")
    server = server_tls(Tls(certificate=signed.certificate, key=signed.key), AT)
    left, right = socket.socketpair()

    def serve() -> None:
        with server.context.wrap_socket(left, server_side=True) as connection:
            connection.sendall(b"x")
            assert connection.recv(1) == b"y"

    thread = threading.Thread(target=serve)
    thread.start()
    client = client_tls(UpstreamTls(ca=authority.ca), AT).context
    with client.wrap_socket(right, server_hostname="localhost") as connection:
        assert connection.recv(1) == b"x"
        connection.sendall(b"y")
    thread.join()
