"""Why nothing came of a connection, in words."""

import socket

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.messages import connect_to_any, explain
from proxy.security.access import PLAINTEXT


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (TimeoutError(), "no answer within 5 s"),
        (
            EOFError(),
            "the server closed the connection without an answer; is this a listener with TLS or SASL?",
        ),
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "Connection refused"),
        (
            socket.gaierror(-2, "Name or service not known"),
            "the name is not known: Name or service not known",
        ),
        (UpstreamUnavailable("the broker refuses the proxy's login"), "the broker refuses the proxy's login"),
        (OSError(), "OSError"),
    ],
)
def test_reasons(error: Exception, says: str) -> None:
    assert explain(error, 5.0) == says


async def test_every_address_has_its_reason() -> None:
    with pytest.raises(UpstreamUnavailable) as caught:
        await connect_to_any([("127.0.0.1", 1), ("::1", 1)], PLAINTEXT, 5.0)
    assert str(caught.value).startswith("127.0.0.1:1: Connection refused; ::1:1: ")


async def test_one_that_fails_its_check_is_closed_and_the_next_is_asked() -> None:
    checked = 0

    async def check(broker: object) -> None:
        nonlocal checked
        checked += 1
        if checked == 1:
            raise EOFError

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        broker = await connect_to_any([address, address], PLAINTEXT, 5.0, check)
        with server.accept()[0] as first:
            assert first.recv(1) == b""
        broker.close()
    assert checked == 2
