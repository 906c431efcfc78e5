"""The kernel probes accepted connections; a broken one is no error."""

import socket

import pytest

from proxy.server.listener.accept.keep_alive import IDLE_SECONDS, PROBE_SECONDS, PROBES, keep_alive


def test_a_connection_is_probed() -> None:
    with socket.socket() as client:
        keep_alive(client)
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="the system has one time for all sockets")
def test_a_client_that_has_vanished_is_noticed_within_minutes() -> None:
    """The default of Linux is more than two hours."""
    with socket.socket() as client:
        keep_alive(client)
        times = [
            client.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
    assert times == [IDLE_SECONDS, PROBE_SECONDS, PROBES]
    assert IDLE_SECONDS + PROBE_SECONDS * PROBES <= 120


def test_a_closed_socket_is_no_error() -> None:
    client = socket.socket()
    client.close()
    keep_alive(client)
