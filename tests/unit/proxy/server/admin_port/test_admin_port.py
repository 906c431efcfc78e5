"""The admin port: it listens at once, and is served once clients are."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession

from proxy.config.settings import Admin
from proxy.demo.ports import free_port_range
from proxy.errors import PortInUse
from proxy.server.admin_port import admin_port
from proxy.server.admin_port.admin_port import AdminServer
from proxy.server.admin_port.sources import AdminSources
from proxy.telemetry.console import no_console
from proxy.telemetry.loop_lag import LoopLag
from proxy.telemetry.quota_table import QuotaTable


def sources(admin: Admin) -> AdminSources:
    """Sources of which /healthz shows none."""
    parts: Any = SimpleNamespace(
        all=[],
        replication=[],
        sinks=(),
        days_left=dict,
        ends=dict,
        problems=list,
        warnings=list,
        problem="",
        reply=no_console,
    )
    return AdminSources(
        settings=admin,
        engines=parts,
        listeners=parts,
        buckets=list,
        table=QuotaTable(),
        replication=lambda: None,
        topic=None,
        usage=None,
        sharing=None,
        certificates=parts,
        loop_lag=LoopLag(),
        readiness=parts,
        console=parts,
        reload=parts,
    )


async def healthz(port: int) -> int:
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}/healthz") as response:
        return response.status


async def test_requests_wait_until_clients_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_port, "SITE_WAITS_SECONDS", 60.0)
    admin = Admin(port=free_port_range(1))
    port = AdminServer(admin, None)
    early = asyncio.ensure_future(healthz(admin.port))
    served: list[bool] = []
    asked = 0

    def clients_served() -> bool:
        nonlocal asked
        asked += 1
        assert not early.done()
        return bool(served)

    serving = asyncio.ensure_future(port.serve(sources(admin), clients_served))
    while asked < 3:  # noqa: ASYNC110
        await asyncio.sleep(0)
    served.append(True)
    await serving
    assert await early == 200
    await port.close()


async def test_nothing_is_imported_for_a_port_that_nobody_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[object] = []
    monkeypatch.setattr(admin_port, "_imported", lambda: imported.append(1))
    # Of one thread: what serve() gives to a thread runs before what is given to it below.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    admin = Admin(port=free_port_range(1))
    port = AdminServer(admin, None)
    serving = asyncio.ensure_future(port.serve(sources(admin), lambda: True))
    await asyncio.sleep(0)
    await asyncio.to_thread(int)
    assert imported == []
    serving.cancel()
    await port.close()


async def test_the_site_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a broker, /readyz has to say so."""
    monkeypatch.setattr(admin_port, "SITE_WAITS_SECONDS", 0.0)
    admin = Admin(port=free_port_range(1))
    port = AdminServer(admin, None)
    serving = asyncio.ensure_future(port.serve(sources(admin), lambda: False))
    assert await healthz(admin.port) == 200
    await serving
    await port.close()


@pytest.mark.parametrize("served", [False, True])
async def test_the_port_is_free_after_close(served: bool) -> None:
    admin = Admin(port=free_port_range(1))
    port = AdminServer(admin, None)
    serving = asyncio.ensure_future(port.serve(sources(admin), lambda: True))
    if served:
        assert await healthz(admin.port) == 200
        await serving
    serving.cancel()
    await port.close()
    await AdminServer(admin, None).close()


async def test_the_port_is_in_use() -> None:
    admin = Admin(port=free_port_range(1))
    port = AdminServer(admin, None)
    with pytest.raises(PortInUse, match=rf"admin\.port: .*{admin.port}"):
        AdminServer(admin, None)
    await port.close()
