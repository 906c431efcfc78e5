"""BrokerHosts: connections to allowed addresses, and to no other."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from proxy.security.broker_hosts import ANY_HOST, BrokerHosts, HostRejected
from tests.support.process.certificates import Authority

HOST = "127.0.0.1"


class Served:
    """A server that counts its connections."""

    def __init__(self) -> None:
        self.connections = 0
        self.port = 0

    def accept(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.close()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    made = Served()
    server = await asyncio.start_server(made.accept, HOST, 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made


class Rejected(list[tuple[str, int]]):
    """The addresses that were reported."""

    def __call__(self, host: str, port: int) -> None:
        self.append((host, port))


async def connect(hosts: BrokerHosts, host: str, port: int, context: ssl.SSLContext | None = None) -> Any:
    closed = asyncio.Event()

    class Client(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            closed.set()

    transport = await hosts.connect(Client, host, port, context)
    # The server closes what it has accepted.
    async with asyncio.timeout(30):
        await closed.wait()
    return transport


@pytest.mark.parametrize(
    ("patterns", "host"),
    [
        ((), HOST),
        ((), "localhost"),
        ((HOST,), HOST),
        (("localhost",), "localhost"),
        (("elsewhere", "127.0.0.0/8"), "localhost"),
    ],
)
async def test_an_allowed_address(served: Served, patterns: tuple[str, ...], host: str) -> None:
    rejected = Rejected()
    await connect(BrokerHosts(patterns, rejected=rejected), host, served.port)
    assert (served.connections, rejected) == (1, [])


@pytest.mark.parametrize(
    ("patterns", "host"),
    [
        (("kafka-*",), HOST),
        (("10.0.0.0/8",), HOST),
        # A name, and what resolvers take for an address.
        (("10.0.0.0/8", "fd00::/8"), "localhost"),
        (("10.0.0.0/8", "kafka-*"), "127.1"),
        (("*:1",), HOST),
    ],
)
async def test_an_address_that_is_not_allowed_gets_no_connection(
    served: Served, patterns: tuple[str, ...], host: str
) -> None:
    rejected = Rejected()
    hosts = BrokerHosts(patterns, [("bootstrap", served.port)], rejected)
    with pytest.raises(HostRejected, match=r"upstream\.hosts"):
        await connect(hosts, host, served.port)
    assert (served.connections, rejected) == (0, [(host, served.port)])


async def test_addresses_of_the_file_are_always_allowed(served: Served) -> None:
    hosts = BrokerHosts(("kafka-*",), [(HOST, served.port), ("Kafka.Example.", 9092)])
    await connect(hosts, HOST, served.port)
    assert hosts.allows("kafka.example", 9092)
    assert not hosts.allows("kafka.example", 9093)


async def test_a_name_is_resolved_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who controls the name's DNS could otherwise change the address between check and connection."""
    asked: list[str] = []

    async def resolve(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        resolved = ("10.1.1.1", HOST) if len(asked) == 1 else ("10.1.1.1",)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port)) for found in resolved]

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", resolve)
    await connect(BrokerHosts(("127.0.0.0/8",)), "rebinding.example", served.port)
    assert asked[:1] == ["rebinding.example"]
    assert "rebinding.example" not in asked[1:]
    assert served.connections == 1


async def test_the_error_of_an_allowed_address_is_its_own(served: Served) -> None:
    with socket.create_server((HOST, 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        await connect(BrokerHosts(("127.0.0.0/8",)), "localhost", port)


@pytest.mark.parametrize("patterns", [(), ("10.0.0.0/8",)])
@pytest.mark.parametrize(
    ("host", "port"),
    [("a..b", 1), ("a" * 64, 1), ("a\0b", 1), (HOST, 65536), ("localhost", 65537), (HOST, -1), (HOST, 0)],
)
async def test_what_is_no_address_is_an_ordinary_failure(
    patterns: tuple[str, ...], host: str, port: int
) -> None:
    """A hostile broker names it; the error must not end the task that asks for metadata."""
    with pytest.raises(OSError, match=r"not a valid|does not allow|not known"):
        await connect(BrokerHosts(patterns), host, port)


async def test_a_resolved_address_must_have_the_certificate_of_the_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    signed = authority.sign("server", hosts=("localhost",))
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(signed.certificate, signed.key)
    served = Served()
    server = await asyncio.start_server(served.accept, HOST, 0, ssl=server_side)
    port = server.sockets[0].getsockname()[1]
    context = ssl.create_default_context(cafile=authority.ca)
    async with server:
        await connect(BrokerHosts(("127.0.0.0/8",)), "localhost", port, context)
        with pytest.raises(ssl.SSLError):
            await connect(ANY_HOST, HOST, port, context)
