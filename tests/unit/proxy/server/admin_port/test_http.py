"""The admin port: who may read it, and that it decompresses nothing."""

import gzip
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp import ClientSession, web

from proxy.config.settings import Admin
from proxy.server.admin_port.http import admin_guard, serve_application


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


def test_names_of_the_host_are_those_of_the_settings() -> None:
    guard = admin_guard(Admin(hosts=("admin.example.com",)))
    for host, allowed in (("admin.example.com", True), ("evil.example", False)):
        asked = request()
        asked.headers["Host"] = host
        assert guard.allows(asked) is allowed


async def test_a_compressed_body_stays_compressed() -> None:
    async def size(request: web.Request) -> web.Response:
        return web.json_response(len(await request.read()))

    application = web.Application()
    application.add_routes([web.post("/", size)])
    bound = socket.create_server(("127.0.0.1", 0))
    stop = await serve_application(application, bound, None)
    bomb = gzip.compress(bytes(1 << 20))
    headers = {"Content-Encoding": "gzip"}
    try:
        async with ClientSession() as client:
            url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
            async with client.post(url, data=bomb, headers=headers) as response:
                assert await response.json() == len(bomb)
    finally:
        await stop()
