"""The admin port: who may read it, and that it is served."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession

from proxy.config.settings import Admin
from proxy.demo.ports import free_port_range
from proxy.errors import PortInUse
from proxy.server.admin_port import admin_guard, serve_admin_port
from proxy.telemetry.http import AdminSite


def request(token: str = "", method: str = "GET") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return SimpleNamespace(method=method, headers=headers)


def test_the_token_of_the_settings_is_read_at_each_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    guard = admin_guard(Admin(bind="0.0.0.0", token_file=str(file)))
    assert not guard.allows(request("first"))
    for token in ("first", "second"):
        file.write_text(token)
        assert guard.allows(request(token))
    assert not guard.allows(request("first"))


def test_without_a_token_the_loopback_may_read_only() -> None:
    guard = admin_guard(Admin())
    assert guard.allows(request())
    assert not guard.allows(request(method="POST"))


async def test_the_site_is_served_until_cleanup() -> None:
    port = free_port_range(1)
    site = AdminSite(families=list, problems=list, warnings=list, buckets=list, time=lambda: 0.0)
    runner = await serve_admin_port(site, Admin(port=port), None)
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}/healthz") as response:
        assert response.status == 200
    with pytest.raises(PortInUse, match=rf"admin\.port: .*{port}"):
        await serve_admin_port(site, Admin(port=port), None)
    await runner.cleanup()
    again = await serve_admin_port(site, Admin(port=port), None)
    await again.cleanup()
