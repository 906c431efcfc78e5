"""Why a connection or a request failed, as text."""

import socket
import ssl
from pathlib import Path

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.upstream.failures import explain
from tests.support.process.certificates import Authority


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (TimeoutError(), "no response within 5 s"),
        (
            EOFError(),
            "the server closed the connection without a response; is this a listener with TLS or SASL?",
        ),
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "Connection refused"),
        (
            socket.gaierror(-2, "Name or service not known"),
            "cannot resolve the host name: Name or service not known",
        ),
        (UpstreamUnavailable("the broker rejects the proxy's login"), "the broker rejects the proxy's login"),
        (OSError(), "OSError"),
    ],
)
def test_explain(error: Exception, says: str) -> None:
    assert explain(error, 5.0) == says


def failure(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str:
    """Why the client's handshake fails."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                return explain(error, 5.0)
    raise AssertionError("the handshake did not fail")


def failure_after(received: bytes) -> str:
    """Why a handshake fails if the server sends these bytes."""
    incoming = ssl.MemoryBIO()
    incoming.write(received)
    connection = ssl.create_default_context().wrap_bio(incoming, ssl.MemoryBIO(), server_hostname="k")
    with pytest.raises(ssl.SSLError) as caught:
        connection.do_handshake()
    return explain(caught.value, 5.0)


def test_rejected_certificates(tmp_path: Path) -> None:
    """The errno of an SSLError is no errno of the system."""
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    signed = authority.sign("server", hosts=["localhost"])
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(signed.certificate, signed.key)
    trusting, doubting = (ssl.create_default_context(cafile=each.ca) for each in (authority, other))
    rejected = "the server's certificate is rejected: "
    assert failure(server, doubting, "localhost") == f"{rejected}unable to get local issuer certificate"
    assert failure(server, trusting, "kafka.test").startswith(f"{rejected}Hostname mismatch")


def test_servers_without_tls_and_alerts() -> None:
    assert failure_after(b"HTTP/1.1 400 Bad Request\r\n") == "the server does not speak TLS at this port"
    alert = b"\x15\x03\x03\x00\x02\x02\x28"  # fatal, handshake_failure
    why = failure_after(alert)
    assert why.startswith("the TLS handshake failed: ")
    assert why.endswith("alert handshake failure")
