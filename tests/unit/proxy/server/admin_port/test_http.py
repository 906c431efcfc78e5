"""The admin port: who may read it, how many connections it has, and that it decompresses nothing."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp import ClientSession, web

from proxy.config.settings import Admin
from proxy.server.admin_port.http import CONNECTIONS, admin_guard, serve_application

WAIT_SECONDS = 60.0


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


@asynccontextmanager
async def serving(*routes: web.RouteDef) -> AsyncIterator[int]:
    """Serve routes at a port."""
    application = web.Application()
    application.add_routes(routes)
    bound = socket.create_server(("127.0.0.1", 0))
    stop = await serve_application(application, bound, None)
    try:
        yield bound.getsockname()[1]
    finally:
        await stop()


async def healthz(request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def ask(port: int) -> str:
    async with ClientSession() as client, client.get(f"http://127.0.0.1:{port}/") as response:
        return await response.text()


async def test_connections_that_send_nothing_keep_nobody_out() -> None:
    async def pong(request: web.Request) -> web.Response:
        return web.Response(text="pong")

    async with serving(web.get("/", pong)) as port, ClientSession() as client:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS + 5)]
        async with client.get(f"http://127.0.0.1:{port}/") as response:
            assert await response.text() == "pong"
        async with asyncio.timeout(WAIT_SECONDS):
            for reader, _ in silent[:6]:
                assert await reader.read() == b""
        assert not any(reader.at_eof() for reader, _ in silent[6:])
        for _, writer in silent:
            writer.close()


async def test_a_compressed_body_stays_compressed() -> None:
    async def size(request: web.Request) -> web.Response:
        return web.json_response(len(await request.read()))

    bomb = gzip.compress(bytes(1 << 20))
    headers = {"Content-Encoding": "gzip"}
    async with (
        serving(web.post("/", size)) as port,
        ClientSession() as client,
        client.post(f"http://127.0.0.1:{port}/", data=bomb, headers=headers) as response,
    ):
        assert await response.json() == len(bomb)
