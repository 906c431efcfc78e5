"""EarlyPorts: which ports listen, and for how long."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.demo.ports import free_port_range
from proxy.errors import SettingsError
from proxy.server.listener.ports import early_ports
from proxy.server.listener.ports.broker_ports import bind
from proxy.server.listener.ports.early_ports import EarlyPorts
from tests.support.process.settings import read

HOST = "127.0.0.1"
RESERVED = 10
"""Ports of brokers without broker_port_count."""


@pytest.fixture
def ports() -> Iterator[EarlyPorts]:
    made = EarlyPorts({})
    yield made
    made.close()


def open_early(ports: EarlyPorts, folder: Path, first: int, more: str = "") -> None:
    """Open the ports of a listener whose bootstrap port is `first`, followed by those of the brokers."""
    listener = f"bootstrap_port: {first}, broker_port_base: {first + 1}, upstream: {{bootstrap: ['k:9092']}}"
    settings = read(folder, f"quotas: {{store: none}}\nlisteners: [{{{listener}{more}}}]\n")
    ports.open(settings)


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((HOST, port)) == 0


@pytest.mark.parametrize(
    ("more", "brokers"),
    [
        ("", RESERVED),
        (", broker_port_count: 2", 2),
        (", broker_port_count: 12", 11),
        (", principal: {from: sasl}", 0),
    ],
    ids=["reserved ports", "few ports", "many ports", "brokers known by clients' requests only"],
)
def test_the_ports_that_the_configuration_reserves_listen(
    more: str, brokers: int, ports: EarlyPorts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_ports, "EARLY_BROKERS", 11)
    first = free_port_range(14)
    open_early(ports, tmp_path, first, more)
    assert [listens(port) for port in range(first, first + 14)] == [True] * (1 + brokers) + [False] * (
        13 - brokers
    )
    ports.close()
    assert not any(listens(port) for port in range(first, first + 14))


def test_any_free_port_is_not_known_early(ports: EarlyPorts, tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "quotas: {store: none}\n"
        "listeners: [{bootstrap_port: 0, broker_port_base: 0, upstream: {bootstrap: ['k:9092']}}]\n",
    )
    ports.open(settings)
    assert ports.take(HOST, 0) is None


def test_ports_of_a_process_that_still_serves_do_not_listen(ports: EarlyPorts, tmp_path: Path) -> None:
    first = free_port_range(RESERVED + 1)
    open_early(ports, tmp_path, first, ", reuse_port: true")
    assert not any(listens(port) for port in range(first, first + RESERVED + 1))


def test_a_port_is_taken_once_and_goes_on_listening(ports: EarlyPorts, tmp_path: Path) -> None:
    first = free_port_range(RESERVED + 1)
    open_early(ports, tmp_path, first)
    with socket.create_connection((HOST, first)) as client:
        taken = ports.take(HOST, first)
        assert taken is not None
        assert ports.take(HOST, first) is None
        ports.close()
        with taken, taken.accept()[0] as accepted:
            assert accepted.getpeername() == client.getsockname()


def test_a_port_in_use_is_skipped(ports: EarlyPorts, tmp_path: Path) -> None:
    first = free_port_range(RESERVED + 1)
    with socket.create_server((HOST, first + 1)):
        open_early(ports, tmp_path, first)
        assert ports.take(HOST, first + 1) is None
        assert listens(first)
        assert listens(first + 2)


def test_passed_sockets_are_served_and_stay_open(tmp_path: Path) -> None:
    """A process in this one's place gets the same sockets, so their ports never reject a connection."""
    first = free_port_range(RESERVED + 1)
    with socket.create_server((HOST, first)) as bootstrap, socket.create_server((HOST, first + 2)) as broker:
        passed = {each.getsockname(): each.dup() for each in (bootstrap, broker)}
        ports = EarlyPorts(passed)
        open_early(ports, tmp_path, first, ", bind: localhost")
        assert ports.is_passed("localhost", first)
        assert not ports.is_passed("localhost", first + 1)
        ports.close()
        assert [listens(port) for port in (first, first + 1, first + 2)] == [True, False, True]
        taken = ports.take("localhost", first + 2)
        assert taken is not None
        assert taken.getsockname() == broker.getsockname()
        assert ports.take("localhost", first + 2) is None
        for each in passed.values():
            each.close()
        assert listens(first + 2)


def test_a_socket_of_both_ip_versions_serves_all_addresses(tmp_path: Path) -> None:
    first = free_port_range(RESERVED + 1)
    with socket.create_server(("::", first), family=socket.AF_INET6, dualstack_ipv6=True) as bootstrap:
        ports = EarlyPorts({("::", first): bootstrap})
        open_early(ports, tmp_path, first, ", bind: 0.0.0.0, advertised_host: localhost")
        assert ports.take("0.0.0.0", first) is bootstrap
        ports.close()
        with pytest.raises(SettingsError, match=r"0\.0\.0\.0"), socket.socket() as other:
            EarlyPorts({("::", first): bootstrap, ("0.0.0.0", first): other})


def test_a_passed_socket_that_no_listener_serves_is_an_error(ports: EarlyPorts, tmp_path: Path) -> None:
    first = free_port_range(RESERVED + 2)
    with socket.create_server((HOST, first + RESERVED + 1)) as beyond:
        ports = EarlyPorts({beyond.getsockname(): beyond})
        with pytest.raises(SettingsError, match=str(first + RESERVED + 1)):
            open_early(ports, tmp_path, first, f", broker_port_count: {RESERVED}")


def test_a_replication_listener_serves_passed_sockets(tmp_path: Path) -> None:
    first = free_port_range(4)
    with socket.create_server((HOST, first + 2)) as broker:
        ports = EarlyPorts({broker.getsockname(): broker})
        settings = read(
            tmp_path,
            f"quotas: {{store: none}}\nlisteners: [{{bootstrap_port: {first}, broker_port_base: 0, "
            f"upstream: {{bootstrap: ['k:9092']}}}}, {{name: brokers, replication: true, broker_port_base: "
            f"{first + 1}, broker_port_count: 3, upstream: {{brokers: {{1: 'k:9092'}}}}}}]\n",
        )
        ports.open(settings)
        assert ports.take(HOST, first + 2) is broker
        ports.close()


def test_a_port_listens_when_it_is_served(ports: EarlyPorts) -> None:
    with bind(HOST, free_port_range(1)) as bound:
        host, port = bound.getsockname()
        ports.serve(host, port, bound)
        assert listens(port)
