"""AdminPort, and peers that are no admin port; test_top.py has what one responds."""

import socket
import threading

import pytest

from proxy.cli.admin_port import AdminPort
from proxy.errors import BadResponse


@pytest.mark.parametrize(
    "response",
    [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"],
    ids=["another protocol", "cut off"],
)
def test_what_is_no_http_is_reported(response: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def respond() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(response)

        thread = threading.Thread(target=respond)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(BadResponse, match=url):
            AdminPort(url).get("/api/quotas", "quotas")
        thread.join()
