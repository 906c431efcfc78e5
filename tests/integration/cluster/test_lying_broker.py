"""A hostile broker that names other addresses for brokers: the proxy connects nobody there."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from kio.schema.errors import ErrorCode

from proxy.server.listener.ports.broker_ports import NO_PORT
from proxy.upstream.addresses import join_address
from proxy.wire.api_keys import FIND_COORDINATOR, METADATA
from tests.support.kafka.raw_client import RawClient
from tests.support.messages.kio_messages import response_type
from tests.support.messages.mutations import NO_TIME
from tests.support.messages.requests import build, find_coordinator, metadata, part
from tests.support.process.metadata_broker import MetadataBroker
from tests.support.process.proxy_process import HOST, ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

METRIC = "quota_proxy_broker_addresses_rejected_total"


class LyingBroker(MetadataBroker):
    """Names nodes 2 and 3 at the trap in metadata, and node 4 as a coordinator."""

    newest: ClassVar[dict[int, int]] = {METADATA: 12, FIND_COORDINATOR: 4}

    def __init__(self, trap: tuple[str, int]) -> None:
        super().__init__()
        self.others = {2: trap, 3: ("localhost", trap[1])}
        self.trap = trap

    async def respond(self, request: Any) -> Any:
        if request.__api_key__ == METADATA:
            return await super().respond(request)
        if request.__api_key__ != FIND_COORDINATOR:
            return None
        schema = response_type(FIND_COORDINATOR, request.__version__)
        host, port = self.trap
        coordinator = part(
            schema,
            "Coordinator",
            key="g",
            node_id=4,
            host=host,
            port=port,
            error_code=ErrorCode.none,
            error_message=None,
        )
        return build(schema, throttle_time=NO_TIME, coordinators=(coordinator,))


@pytest.fixture
def trap() -> Iterator[socket.socket]:
    """A server that must get no connection."""
    with socket.create_server((HOST, 0)) as server:
        server.setblocking(False)
        yield server


def accepted(trap: socket.socket) -> bool:
    try:
        trap.accept()[0].close()
    except BlockingIOError:
        return False
    return True


async def lied_to(
    run_proxy: ProxyRunner, trap: socket.socket, hosts: list[str], be_client: Callable[[ProxyProcess], None]
) -> ProxyProcess:
    """Run a proxy in front of a lying broker, and a client of the proxy."""
    async with LyingBroker(trap.getsockname()) as broker:
        address = join_address(*broker.address)
        upstream = {"bootstrap": [address], **({"hosts": hosts} if hosts else {})}
        proxy = await asyncio.to_thread(
            run_proxy, address, settings={"quotas": {"store": "none"}}, listener={"upstream": upstream}
        )
        await asyncio.to_thread(be_client, proxy)
    return proxy


async def test_upstream_hosts(run_proxy: ProxyRunner, trap: socket.socket) -> None:
    """`localhost` stays unknown until it is resolved: the entry is a network."""

    def go_wherever_it_is_told(proxy: ProxyProcess) -> None:
        with RawClient(proxy.broker_port(1)) as client:
            ports = {int(node.node_id): int(node.port) for node in client.ask(metadata()).brokers}
            ports[4] = int(client.ask(find_coordinator("g", version=4)).coordinators[0].port)
        assert ports == {1: proxy.broker_port(1), 2: NO_PORT, 3: proxy.broker_port(3), 4: NO_PORT}
        with RawClient(ports[3]) as client:
            client.send(metadata())
            assert client.ended()

    proxy = await lied_to(run_proxy, trap, ["10.0.0.0/8"], go_wherever_it_is_told)
    assert not accepted(trap)
    assert proxy.metric(METRIC, listener="clients") >= 3
    wait_until(lambda: bool(proxy.log_lines(f"upstream.hosts .*{trap.getsockname()[1]}")), "a line")


async def test_without_upstream_hosts(run_proxy: ProxyRunner, trap: socket.socket) -> None:
    """The trap is one: the other test can fail."""

    def go_to_the_trap(proxy: ProxyProcess) -> None:
        with RawClient(proxy.broker_port(2)) as client:
            client.send(metadata())
            wait_until(lambda: accepted(trap), "a connection")

    await lied_to(run_proxy, trap, [], go_to_the_trap)
