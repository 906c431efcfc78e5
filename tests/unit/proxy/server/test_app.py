"""Proxy: the whole process but for its loop, in front of a broker that knows only metadata."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from proxy.demo.ports import free_port_range
from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds.client_bytes import KIND as CLIENT_BYTES
from proxy.quota.limits.limits import Limits
from proxy.server import listeners
from proxy.server.app import Proxy, forget_idle
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.wire.api_keys import METADATA
from tests.support.messages.kio_messages import read_frame, request_frame, response_type
from tests.support.messages.requests import metadata
from tests.support.process.metadata_broker import MetadataBroker
from tests.support.process.settings import KINDS, configuration

HOST = "127.0.0.1"
POLL_SECONDS = 0.02


class Running:
    """A proxy that serves in this process."""

    def __init__(
        self,
        tmp_path: Path,
        upstream: tuple[str, int],
        more: str = "",
        *,
        early: bool = False,
        passed: socket.socket | None = None,
        delay: int = 0,
    ) -> None:
        """`early`: whether the ports listen before the proxy is built. `passed`: a service manager's socket,
        at the bootstrap port.
        """
        self.port = free_port_range(4) if passed is None else passed.getsockname()[1]
        early_ports = EarlyPorts({} if passed is None else {passed.getsockname(): passed.dup()})
        self.file = tmp_path / "proxy.yaml"
        settings = configuration(
            tmp_path,
            f"""
            listeners:
            - bootstrap_port: {self.port}
              broker_port_base: {self.port + 1}
              broker_port_count: 2
              upstream: {{bootstrap: ["{upstream[0]}:{upstream[1]}"]}}
            admin: {{port: {self.port + 3}}}
            limits: {{drain_seconds: 5, shutdown_delay_seconds: {delay}}}
            quotas: {{store: none}}
            {more}
            """,
        )
        if early:
            early_ports.open(settings.settings)
        self._serving = asyncio.ensure_future(Proxy(settings, KINDS, self.file, early_ports).serve())

    async def get(self, page: str) -> tuple[int, Any]:
        """The status and the body of a page of the admin port, once it is served."""
        async with ClientSession() as session:
            while not self._serving.done():
                try:
                    async with session.get(f"http://{HOST}:{self.port + 3}/{page}") as response:
                        plain = response.content_type.startswith("text/")
                        return response.status, await (response.text() if plain else response.json())
                except OSError:
                    await asyncio.sleep(POLL_SECONDS)
        raise AssertionError(f"the proxy ended: {self._serving.exception()!r}")

    async def ready(self) -> None:
        async def is_ready() -> bool:
            return (await self.get("readyz"))[0] == 200

        await until(is_ready)

    async def ended(self) -> None:
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        if not self._serving.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await self._serving


@asynccontextmanager
async def running(
    tmp_path: Path,
    upstream: tuple[str, int],
    more: str = "",
    *,
    early: bool = False,
    passed: socket.socket | None = None,
    delay: int = 0,
) -> AsyncIterator[Running]:
    async with asyncio.timeout(30):
        proxy = Running(tmp_path, upstream, more, early=early, passed=passed, delay=delay)
        try:
            yield proxy
        finally:
            await proxy.stop()


async def ask_metadata(port: int) -> Any:
    return await asked(*await asyncio.open_connection(HOST, port))


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Any:
    """Ask for metadata on this connection, and close it."""
    writer.write(request_frame(metadata()))
    size = await reader.readexactly(4)
    frame = size + await reader.readexactly(int.from_bytes(size, "big"))
    writer.close()
    await writer.wait_closed()
    return read_frame(response_type(METADATA, 12), frame)


async def rejects(port: int) -> bool:
    """Whether the port was closed before the connection."""
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        return False  # it was closed before the event loop saw the connection
    writer.close()
    return False


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():  # noqa: ASYNC110 (the condition is in pages that have to be fetched)
        await asyncio.sleep(POLL_SECONDS)


async def test_connections_are_served_between_two_steps_of_forgetting() -> None:
    engines = QuotaEngines([CLIENT_BYTES], Limits({}))
    for node_id in range(4):
        engines.engine(node_id, 0.0)
    steps, turns = [0], [0]

    class Counting:
        def forget_idle(self, now: float) -> bool:
            steps[0] += 1
            return engines.forget_idle(now)

    async def others() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(others())  # noqa: TID251
    await forget_idle(Counting())
    other.cancel()
    assert steps[0] >= 8
    assert turns[0] >= steps[0]


async def test_clients_are_served_through_the_bootstrap_port_and_the_broker_s_own(tmp_path: Path) -> None:
    async with MetadataBroker() as broker, running(tmp_path, broker.address) as proxy:
        await proxy.ready()
        for port in (proxy.port, proxy.port + 2):
            [node] = (await ask_metadata(port)).brokers
            assert (node.node_id, node.host, node.port) == (1, HOST, proxy.port + 2)


async def test_metrics_count_what_clients_do(tmp_path: Path) -> None:
    async with MetadataBroker() as broker, running(tmp_path, broker.address) as proxy:
        await proxy.ready()
        await ask_metadata(proxy.port)

        async def counted() -> bool:
            _, page = await proxy.get("metrics")
            return (
                'quota_proxy_requests_total{api="Metadata",listener="clients"} 1.0' in page
                and 'quota_proxy_connections_closed_total{listener="clients",reason="client_closed"} 1.0'
                in page
            )

        await until(counted)


async def test_without_a_broker_the_proxy_is_not_ready_and_serves_nobody(tmp_path: Path) -> None:
    async with running(tmp_path, (HOST, free_port_range(1))) as proxy:
        status, page = await proxy.get("readyz")
        assert (status, page["ready"]) == (503, False)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, proxy.port)


async def test_clients_that_connect_before_the_proxy_serves_are_served(tmp_path: Path) -> None:
    async with MetadataBroker() as broker, running(tmp_path, broker.address, early=True) as proxy:
        waiting = [await asyncio.open_connection(HOST, port) for port in (proxy.port, proxy.port + 2)]
        for connection in waiting:
            [node] = (await asked(*connection)).brokers
            assert node.port == proxy.port + 2
        await proxy.ready()

        # The port of a node id without a broker.
        await until(lambda: rejects(proxy.port + 1))


async def test_early_ports_do_not_outlast_a_start_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Clients go on to their other bootstrap servers, and come back when they are served."""
    monkeypatch.setattr(listeners, "EARLY_SECONDS", 0.0)
    port = free_port_range(1)
    async with running(tmp_path, (HOST, port), early=True) as proxy:

        async def rejected() -> bool:
            try:
                reader, writer = await asyncio.open_connection(HOST, proxy.port)
            except ConnectionRefusedError:
                return True
            except ConnectionResetError:
                return False  # it was closed before the event loop saw the connection
            with pytest.raises(ConnectionResetError):
                await reader.read()
            writer.close()
            return False

        await until(rejected)
        broker = MetadataBroker()
        broker.port = port
        async with broker:
            await proxy.ready()
            await ask_metadata(proxy.port)


async def test_a_service_manager_s_port_outlasts_a_start_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its clients wait: only the service manager can close it."""
    monkeypatch.setattr(listeners, "EARLY_SECONDS", 0.0)
    port = free_port_range(1)
    with socket.create_server((HOST, free_port_range(4))) as passed:
        connection = await asyncio.open_connection(HOST, passed.getsockname()[1])
        async with running(tmp_path, (HOST, port), early=True, passed=passed) as proxy:
            await until(lambda: rejects(proxy.port + 1))
            broker = MetadataBroker()
            broker.port = port
            async with broker:
                assert len((await asked(*connection)).brokers) == 1
        _, writer = await asyncio.open_connection(HOST, proxy.port)
        writer.close()


async def test_a_changed_file_is_applied_on_sighup(tmp_path: Path) -> None:
    async with MetadataBroker() as broker, running(tmp_path, broker.address) as proxy:
        await proxy.ready()
        proxy.file.write_text("listeners: nonsense\n")
        os.kill(os.getpid(), signal.SIGHUP)

        async def rejected() -> bool:
            return "quota_proxy_config_last_reload_successful 0.0" in (await proxy.get("metrics"))[1]

        await until(rejected)
        assert len((await proxy.get("readyz"))[1]["warnings"]) == 1


async def test_sigterm_lets_connections_finish_and_frees_the_ports(tmp_path: Path) -> None:
    async with MetadataBroker() as broker, running(tmp_path, broker.address) as proxy:
        await proxy.ready()
        reader, writer = await asyncio.open_connection(HOST, proxy.port)
        writer.write(request_frame(metadata()))
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size)
        await proxy.stop()
        assert await reader.read() == b""
        writer.close()
        for port in range(proxy.port, proxy.port + 4):
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(HOST, port)


async def test_clients_are_served_while_load_balancers_notice_the_shutdown(tmp_path: Path) -> None:
    async with MetadataBroker() as broker, running(tmp_path, broker.address, delay=3600) as proxy:
        await proxy.ready()
        os.kill(os.getpid(), signal.SIGTERM)

        async def not_ready() -> bool:
            return (await proxy.get("readyz"))[0] == 503

        await until(not_ready)
        assert len((await ask_metadata(proxy.port)).brokers) == 1
        await proxy.stop()  # the second signal
        assert await rejects(proxy.port)


async def test_two_signals_in_one_turn_of_the_event_loop_end_the_delay(tmp_path: Path) -> None:
    async with MetadataBroker() as broker, running(tmp_path, broker.address, delay=3600) as proxy:
        await proxy.ready()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        await proxy.ended()


async def test_systemd_hears_of_the_start_a_reload_and_the_shutdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        loop = asyncio.get_running_loop()

        async def first_line() -> bytes:
            line = b"STATUS"
            while line.startswith(b"STATUS"):  # on a busy machine, the status changes during the start
                line = (await loop.sock_recv(manager, 4096)).split(b"\n")[0]
            return line

        async with MetadataBroker() as broker, running(tmp_path, broker.address):
            assert await first_line() == b"READY=1"
            os.kill(os.getpid(), signal.SIGHUP)
            assert [await first_line(), await first_line()] == [b"RELOADING=1", b"READY=1"]
        assert await first_line() == b"STOPPING=1"
