"""The gateway between brokers, on real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from proxy.config.settings import Settings
from proxy.demo.ports import free_port_range
from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limits import Limits
from proxy.relay.budgets.group_members import GroupMembers
from proxy.relay.budgets.large_frames import LargeFrames
from proxy.relay.budgets.list_turns import ListTurns
from proxy.relay.budgets.read_turns import ReadTurns
from proxy.relay.inflight import InFlightRoom
from proxy.server.listener.accept.admission import LimitedAdmission
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.listener_context import ListenerContext
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.server.listener.replication_gateway import replication_gateway
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from tests.support.messages.kio_messages import read_frame, request_frame, response_type
from tests.support.messages.requests import metadata
from tests.support.process.listeners import NoAdminApis
from tests.support.process.metadata_broker import MetadataBroker
from tests.support.process.settings import read

HOST = "127.0.0.1"


def settings(tmp_path: Path, base: int, upstream: tuple[str, int], brokers: str) -> Settings:
    address = f"{upstream[0]}:{upstream[1]}"
    return read(
        tmp_path,
        f"""
        listeners:
        - {{bootstrap_port: 0, broker_port_base: 0, upstream: {{bootstrap: ["{address}"]}}}}
        - name: brokers
          replication: true
          broker_port_base: {base}
          broker_port_count: 2
          upstream: {{brokers: {{{brokers}}}}}
        limits: {{max_connections: 1}}
        """,
    )


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Gateway]:
    tasks = Tasks()
    cluster = ClusterRefresh(
        "clients", ClusterAccess(settings.listeners[0].upstream.addresses, 1.0), lambda view: None
    )
    admin: Any = NoAdminApis()
    shared = ListenerContext(
        settings=settings,
        engines=QuotaEngines(load_kinds(), Limits({})),
        admission=LimitedAdmission(1, 1),
        admin=admin,
        large_frames=LargeFrames(),
        list_turns=ListTurns(1),
        group_members=GroupMembers(1 << 20),
        request_turns=ReadTurns(None),
        response_turns=ReadTurns(None),
        in_flight_room=InFlightRoom(),
        early=EarlyPorts({}),
        tasks=tasks,
    )
    gateway = replication_gateway(shared, settings.listeners[1], cluster)
    gateway.start()
    try:
        async with asyncio.timeout(30):
            yield gateway
    finally:
        gateway.stop_listening()
        gateway.connections.abort()
        await tasks.cancel()
        gateway.close()


async def test_brokers_are_forwarded_unchanged_and_without_connection_limits(tmp_path: Path) -> None:
    base = free_port_range(2)
    async with MetadataBroker() as broker:
        address = f'1: "{broker.address[0]}:{broker.address[1]}"'
        async with serving(settings(tmp_path, base, broker.address, address)) as gateway:
            streams = [await asyncio.open_connection(HOST, base + 1) for _ in range(3)]
            for reader, writer in streams:
                writer.write(request_frame(metadata()))
                size = await reader.readexactly(4)
                frame = size + await reader.readexactly(int.from_bytes(size, "big"))
                [node] = read_frame(response_type(3, 12), frame).brokers
                assert (node.host, node.port) == broker.address
            assert gateway.connection_count == 3
            assert (gateway.problems(), gateway.between_brokers, gateway.usage) == ([], True, None)
            for _, writer in streams:
                writer.close()


async def test_a_broker_without_a_port_is_a_problem(tmp_path: Path) -> None:
    base = free_port_range(2)
    taken = await asyncio.start_server(lambda reader, writer: None, HOST, base + 1)
    async with serving(settings(tmp_path, base, (HOST, 9), '1: "internal:9092"')) as gateway:
        [problem] = gateway.problems()
        assert str(base + 1) in problem
        assert gateway.brokers_without_port == 1
    taken.close()


async def test_it_binds_no_bootstrap_port(tmp_path: Path) -> None:
    base = free_port_range(2)
    configured = settings(tmp_path, base, (HOST, 9), '1: "internal:9092"')
    taken = await asyncio.start_server(lambda reader, writer: None, HOST, 0)
    port = taken.sockets[0].getsockname()[1]
    listener = msgspec.structs.replace(configured.listeners[1], bootstrap_port=port)
    configured = msgspec.structs.replace(configured, listeners=(configured.listeners[0], listener))
    async with serving(configured):
        _, writer = await asyncio.open_connection(HOST, base + 1)
        writer.close()
    taken.close()
