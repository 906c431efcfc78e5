"""Why a connection or a request failed, as text."""

import socket

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.upstream.failures import explain


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
