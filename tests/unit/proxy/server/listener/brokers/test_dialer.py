"""BrokerDialer: where a client's connection to its broker goes, and what a failure leads to."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.config.settings import Listener, Upstream
from proxy.errors import UpstreamUnavailable
from proxy.security.access import PLAINTEXT, Access
from proxy.security.broker_hosts import BrokerHosts
from proxy.security.settings import UpstreamTls
from proxy.server.listener.brokers.bootstrap_router import BootstrapRouter
from proxy.server.listener.brokers.dialer import CONNECTED, FAILED, BrokerDialer
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from tests.support.process.certificates import Authority

LISTENER = Listener(upstream=Upstream(bootstrap=("a:1",)), broker_port_base=0)


class Cluster(ClusterRefresh):
    """Counts the requests for fresh metadata."""

    def __init__(self) -> None:
        super().__init__("test", ClusterAccess((("a", 1),), 1.0), lambda view: None)
        self.refreshes = 0

    def request_refresh(self) -> None:
        self.refreshes += 1


class Kit:
    """A dialer; brokers' own ports at the proxy are bound, and closed by the fixture."""

    def __init__(self) -> None:
        self.bound: list[socket.socket] = []
        self.cluster = Cluster()
        self.ports = BrokerPorts(LISTENER, range(0), lambda node_id, bound: self.bound.append(bound))
        self.router = BootstrapRouter((("a", 1),), self.cluster, self.ports, lambda: 0.0)
        self.dialer = BrokerDialer(
            router=self.router, cluster=self.cluster, access=PLAINTEXT, connect_seconds=20.0
        )


class Protocol(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport


@pytest.fixture
def kit() -> Iterator[Kit]:
    kit = Kit()
    yield kit
    for bound in kit.bound:
        bound.close()


async def test_the_broker_s_own_address_is_dialed(kit: Kit) -> None:
    protocol = Protocol()
    with socket.create_server(("127.0.0.1", 0)) as broker:
        kit.ports.advertised(3, *broker.getsockname())
        await kit.dialer.dial(3, protocol)
        assert protocol.transport.get_extra_info("peername") == broker.getsockname()
        protocol.transport.abort()
    assert kit.cluster.refreshes == 0
    assert kit.dialer.connects == {(3, CONNECTED): 1}


async def test_an_unreachable_broker_is_avoided_and_metadata_requested(kit: Kit) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = nobody.getsockname()
    kit.ports.advertised(3, *address)
    kit.ports.advertised(4, "127.0.0.1", 9)
    with pytest.raises(UpstreamUnavailable, match=f"broker 3 .*{address[1]}"):
        await kit.dialer.dial(3, Protocol())
    assert kit.cluster.refreshes == 1
    assert {kit.router.next() for _ in range(4)} == {4}
    assert kit.dialer.connects == {(3, FAILED): 1}


@pytest.mark.parametrize(
    ("hosts", "server_name"), [(("elsewhere.test",), None), (("localhost",), "kafka.test")]
)
async def test_an_address_with_a_certificate_that_is_not_its_certificate_gets_nothing(
    kit: Kit, tmp_path: Path, hosts: tuple[str, ...], server_name: str | None
) -> None:
    """A hostile broker names the address of another server with a certificate of the same authority."""
    authority = Authority(tmp_path)
    signed = authority.sign("server", hosts=hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed.certificate, signed.key)
    served: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    access = Access(UpstreamTls(ca=authority.ca, server_name=server_name))
    dialer = BrokerDialer(router=kit.router, cluster=kit.cluster, access=access, connect_seconds=20.0)
    kit.ports.advertised(3, "localhost", server.sockets[0].getsockname()[1])
    async with server:
        with pytest.raises(UpstreamUnavailable, match="broker 3"):
            await dialer.dial(3, Protocol())
    assert served == []


async def test_a_connection_that_takes_too_long(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    dialer = BrokerDialer(router=kit.router, cluster=kit.cluster, access=PLAINTEXT, connect_seconds=0.1)
    kit.ports.advertised(3, "127.0.0.1", 9)

    async def hang(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", hang)
    with pytest.raises(UpstreamUnavailable, match="broker 3 "):
        await dialer.dial(3, Protocol())
    assert kit.cluster.refreshes == 1


async def test_an_address_that_upstream_hosts_does_not_allow(kit: Kit) -> None:
    """The ports know no such address, unless its name is resolved only now."""
    access = Access(hosts=BrokerHosts(("10.0.0.0/8",)))
    dialer = BrokerDialer(router=kit.router, cluster=kit.cluster, access=access, connect_seconds=20.0)
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.setblocking(False)
        kit.ports.advertised(3, "localhost", trap.getsockname()[1])
        with pytest.raises(UpstreamUnavailable, match=r"broker 3 .*upstream\.hosts"):
            await dialer.dial(3, Protocol())
        with pytest.raises(BlockingIOError):
            trap.accept()
    assert dialer.connects == {(3, FAILED): 1}


@pytest.mark.parametrize(("host", "port"), [("a..b", 9092), ("127.0.0.1", 70_000)])
async def test_an_address_that_cannot_be_one(kit: Kit, host: str, port: int) -> None:
    kit.ports.advertised(3, host, port)
    with pytest.raises(UpstreamUnavailable, match="broker 3 "):
        await kit.dialer.dial(3, Protocol())


@pytest.mark.parametrize("node_id", [None, 8])
async def test_a_broker_that_is_no_longer_known(kit: Kit, node_id: int | None) -> None:
    with pytest.raises(UpstreamUnavailable):
        await kit.dialer.dial(node_id, Protocol())
    assert kit.cluster.refreshes == 0
    assert kit.dialer.connects == ({} if node_id is None else {(node_id, FAILED): 1})
