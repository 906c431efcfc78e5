"""Ports: the error for a port that cannot be bound has the key, the port and the address, and no client is
sent past the proxy.
"""

import errno
import os
import socket

import pytest

from proxy.config.settings import Listener, Upstream
from proxy.demo.ports import free_port_range
from proxy.errors import PortInUse
from proxy.security.broker_hosts import BrokerHosts
from proxy.server.listener.ports.broker_ports import NO_PORT, BrokerPorts, bind, listening, reject_connections
from proxy.wire.addresses import Address
from tests.support.process.resource_limits import no_descriptor_left

HOST = "127.0.0.1"


def test_a_port_that_is_in_use() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=rf"^admin\.port: .*{port}.*{HOST}"):
            bind(HOST, port, "admin.port: ")


def test_an_address_of_another_machine() -> None:
    with pytest.raises(PortInUse, match=r"192\.0\.2\.1.* bind "):
        bind("192.0.2.1", 9)


def test_a_port_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(self: socket.socket, address: tuple[str, int]) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(socket.socket, "bind", reject)
    with pytest.raises(PortInUse, match="CAP_NET_BIND_SERVICE"):
        bind(HOST, 80)


def test_processes_share_a_port_if_both_say_so() -> None:
    with bind(HOST, 0, reuse_port=True) as first:
        port = first.getsockname()[1]
        first.listen()
        with bind(HOST, port, reuse_port=True) as second:
            second.listen()
        with pytest.raises(PortInUse):
            bind(HOST, port)


def test_a_port_that_another_process_takes_between_bind_and_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[socket.socket] = []

    def reject(self: socket.socket, backlog: int) -> None:
        tried.append(self)
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))

    monkeypatch.setattr(socket.socket, "listen", reject)
    with pytest.raises(PortInUse, match=rf"^admin\.port: port \d+ on {HOST} "):
        listening(HOST, 0, "admin.port: ")
    assert [bound.fileno() for bound in tried] == [-1], "it is closed"


@pytest.mark.parametrize("listens", [True, False])
def test_a_port_that_has_rejected_connections_serves_those_that_come_later(listens: bool) -> None:
    """With reuse_port, a bootstrap port does not listen until it is served."""
    with bind(HOST, 0) as bound:
        if listens:
            bound.listen()
        for _ in range(2):
            reject_connections(bound)
            with socket.socket() as rejected:
                assert rejected.connect_ex(bound.getsockname()) != 0
        bound.listen()
        with socket.create_connection(bound.getsockname()) as client:
            bound.setblocking(True)
            accepted, _ = bound.accept()
            with accepted:
                accepted.sendall(b"x")
                assert client.recv(1) == b"x"
                client.sendall(b"y")
                assert accepted.recv(1) == b"y"


def test_no_descriptor_is_left() -> None:
    with no_descriptor_left(), pytest.raises(PortInUse, match=os.strerror(errno.EMFILE)):
        bind(HOST, 0)


def test_a_free_port() -> None:
    with bind(HOST, 0) as bound:
        assert bound.getsockname()[1] > 0


def test_a_broker_s_port_that_listens_already_is_not_bound_again() -> None:
    base = free_port_range(2)
    listener = Listener(upstream=Upstream(bootstrap=("a:1",)), broker_port_base=base)
    served: dict[int, socket.socket] = {}
    with bind(HOST, base + 1) as early:
        ports = BrokerPorts(
            listener,
            range(base, base + 2),
            served.__setitem__,
            lambda host, port: early if (host, port) == (HOST, base + 1) else None,
        )
        for node_id in (0, 1):
            assert ports.advertised(node_id, "b", 1).port == base + node_id
        assert served[1] is early
    served[0].close()


@pytest.mark.parametrize("node_id", [0, 1], ids=["in use", "beyond broker_port_count"])
def test_a_broker_without_a_port_is_not_advertised_at_its_own_address(node_id: int) -> None:
    """A client that is told the broker's own address bypasses the proxy."""

    def advertised(address: Address | None) -> tuple[str, int]:
        assert address is not None
        return address.host, address.port

    with socket.create_server((HOST, 0)) as taken:
        base = taken.getsockname()[1]
        listener = Listener(
            upstream=Upstream(bootstrap=("a:1",)), broker_port_base=base, advertised_host="proxy.example"
        )
        ports = BrokerPorts(listener, range(base, base + 1), lambda node_id, bound: bound.close())
        nowhere = ("proxy.example", NO_PORT)
        assert advertised(ports.advertised(node_id, "broker.internal", 9092)) == nowhere
        assert advertised(ports.addresses.find(node_id, "broker.internal", 9092)) == nowhere
        ports.retry()
        assert advertised(ports.addresses.find(node_id, "broker.internal", 9092)) == nowhere
        assert list(ports.without_port) == [node_id]


def test_a_broker_named_at_an_address_that_it_may_not_have_keeps_the_one_that_it_had() -> None:
    base = free_port_range(2)
    listener = Listener(upstream=Upstream(bootstrap=("a:1",)), broker_port_base=base)
    rejected: list[tuple[str, int]] = []
    hosts = BrokerHosts(("kafka-*",), rejected=lambda host, port: rejected.append((host, port)))
    bound: list[int] = []

    def note(node_id: int, port: socket.socket) -> None:
        bound.append(node_id)
        port.close()

    ports = BrokerPorts(listener, range(base, base + 2), note, hosts=hosts)
    ports.advertised(1, "kafka-1", 9092)
    assert ports.advertised(1, "169.254.169.254", 80).port == base + 1
    assert ports.advertised(0, "169.254.169.254", 80).port == NO_PORT
    # The relay reads the response again, and must find what it has.
    assert ports.addresses.find(1, "169.254.169.254", 80) is not None
    assert ports.upstream(1) == ("kafka-1", 9092)
    assert ports.upstream(0) is None
    assert rejected == [("169.254.169.254", 80)] * 2
    ports.retry()
    assert bound == [1], "a broker that is nowhere has no port"
    assert ports.advertised(0, "kafka-0", 9092).port == base


def test_a_broker_is_advertised_where_its_port_is_forwarded_from() -> None:
    base = free_port_range(2)
    listener = Listener(
        upstream=Upstream(bootstrap=("a:1",)),
        broker_port_base=base,
        advertised_host="proxy.example",
        advertised_broker_port_base=65535,
        advertised_brokers={5: "lb-5.example:9094"},
    )
    bound: dict[int, int] = {}

    def note(node_id: int, port: socket.socket) -> None:
        bound[node_id] = port.getsockname()[1]
        port.close()

    ports = BrokerPorts(listener, range(base, base + 2), note)
    first = ports.advertised(0, "broker.internal", 9092)
    assert (first.host, first.port) == ("proxy.example", 65535)
    assert bound == {0: base}
    beyond = ports.advertised(1, "broker.internal", 9093)
    assert (beyond.port, list(ports.without_port), bound) == (NO_PORT, [1], {0: base})
