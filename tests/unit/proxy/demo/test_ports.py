import socket
from itertools import pairwise

import pytest

from proxy.demo import ports
from proxy.demo.ports import free_port_range, free_ports


def test_ports_can_be_listened_at_and_differ() -> None:
    given = free_ports(20)
    assert len(set(given)) == 20
    for port in given:
        socket.create_server(("127.0.0.1", port)).close()


def test_all_ports_of_a_range_are_free() -> None:
    first = free_port_range(10)
    for port in range(first, first + 10):
        socket.create_server(("127.0.0.1", port)).close()


def test_no_port_is_returned_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_port_range(8)
    monkeypatch.setattr(ports, "_CANDIDATES", range(first, first + 16))
    others = sorted(free_ports(6))
    assert first + 8 <= others[0]
    assert all(one < other for one, other in pairwise(others))


def test_a_port_in_use_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_port_range(4)
    monkeypatch.setattr(ports, "_given", set())
    monkeypatch.setattr(ports, "_CANDIDATES", range(first, first + 4))
    with socket.create_server(("127.0.0.1", first + 1)):
        assert free_port_range(1) != first + 1
        with pytest.raises(OSError, match=rf"\b3 .*\b{first}\b"):
            free_port_range(3)
