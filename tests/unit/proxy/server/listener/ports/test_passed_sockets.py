"""passed_sockets: what a service manager passes, and to whom."""

import os
import socket
from collections.abc import Iterator

import pytest

from proxy.errors import SettingsError
from proxy.server.listener.ports.passed_sockets import passed_sockets

HOST = "127.0.0.1"
FIRST = 900
"""Stands for 3, which this process may use for something else."""


@pytest.fixture
def bound() -> Iterator[list[socket.socket]]:
    """Two sockets; the descriptors from FIRST on are copies of theirs."""
    made = [socket.socket(), socket.socket()]
    for place, each in enumerate(made):
        each.bind((HOST, 0))
        os.dup2(each.fileno(), FIRST + place)
    yield made
    for place, each in enumerate(made):
        each.close()
        try:
            os.close(FIRST + place)
        except OSError:
            continue  # The test has closed it.


def environ(count: object = 2, pid: int | None = None) -> dict[str, str]:
    return {"LISTEN_PID": str(os.getpid() if pid is None else pid), "LISTEN_FDS": str(count), "HOME": "/"}


def test_listening_sockets(bound: list[socket.socket]) -> None:
    for each in bound:
        each.listen()
    variables = environ()
    found = passed_sockets(variables, FIRST)
    assert variables == {"HOME": "/"}
    assert list(found) == [each.getsockname() for each in bound]
    for place, each in enumerate(found.values()):
        assert each.fileno() == FIRST + place
        assert not each.getblocking()
        assert not each.get_inheritable()
        each.close()


@pytest.mark.parametrize(
    "variables",
    [{}, environ(pid=1), environ(count=""), environ(count="-1")],
    ids=["none", "not ours", "", "-1"],
)
def test_nothing_is_passed(variables: dict[str, str], bound: list[socket.socket]) -> None:
    assert passed_sockets(variables, FIRST) == {}
    assert not {"LISTEN_PID", "LISTEN_FDS"} & set(variables)


def test_a_socket_that_does_not_listen(bound: list[socket.socket]) -> None:
    with pytest.raises(SettingsError, match=f"descriptor {FIRST} "):
        passed_sockets(environ(), FIRST)


def test_a_descriptor_that_is_not_open() -> None:
    with pytest.raises(SettingsError, match=f"descriptor {FIRST} "):
        passed_sockets(environ(), FIRST)


def test_a_socket_of_another_kind() -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("")
        made.listen()
        with pytest.raises(SettingsError, match="TCP"):
            passed_sockets(environ(1), made.fileno())
