"""Who sees which page of the admin port."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from proxy.security.secrets import SecretMissing
from proxy.telemetry.guard import ADMIN_PORT, Guard, author_of

TOKEN = "t0ken"


async def page(request: web.Request) -> web.Response:
    return web.Response()


def guarded(guard: Guard) -> web.Application:
    application = web.Application(middlewares=[guard.middleware()])
    application.add_routes([web.get("/{any:.*}", page), web.post("/{any:.*}", page)])
    return application


def client(
    bind: str,
    token: Callable[[], str] | None = None,
    *,
    certificate: bool = False,
    hosts: tuple[str, ...] = (),
) -> TestClient[web.Request, web.Application]:
    guard = Guard(bind, token, by_certificate=certificate, hosts=hosts)
    return TestClient(TestServer(guarded(guard)))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def statuses(
    made: TestClient[web.Request, web.Application], headers: dict[str, str] | None = None
) -> tuple[int, int]:
    """Of reading, and of changing."""
    async with made as asked:
        read = await asked.get("/metrics", headers=headers)
        changed = await asked.post("/api/quotas", headers=headers)
        return read.status, changed.status


@pytest.mark.parametrize("bind", ["127.0.0.1", "::1", "localhost"])
async def test_reading_on_the_loopback_needs_no_token(bind: str) -> None:
    # Without a token in the configuration, no client can have the right one.
    assert await statuses(client(bind)) == (200, 403)
    assert await statuses(client(bind, lambda: TOKEN)) == (200, 401)
    assert await statuses(client(bind, lambda: TOKEN), bearer(TOKEN)) == (200, 200)


def named(host: str) -> dict[str, str]:
    return {"Host": host}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:9644",
        "[::1]:9644",
        "192.0.2.1",
        "localhost",
        "LOCALHOST.:9644",
        "proxy.localhost:9644",
        "Admin.Example.com:443",
    ],
)
async def test_reading_with_a_name_that_dns_cannot_rebind(host: str) -> None:
    assert await statuses(client("127.0.0.1", hosts=("admin.example.com",)), named(host)) == (200, 403)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:9644",
        "localhost.evil.example",
        "127.0.0.1.evil.example:9644",
        "notlocalhost",
        "2130706433",
        "[::1].evil.example",
        "[evil",
        "",
    ],
)
async def test_a_page_of_another_site_whose_name_resolves_to_this_host_reads_nothing(host: str) -> None:
    allowed = ("admin.example.com",)
    assert await statuses(client("127.0.0.1", hosts=allowed), named(host)) == (403, 403)
    assert await statuses(client("127.0.0.1", lambda: TOKEN, hosts=allowed), named(host)) == (401, 401)
    # No other site knows the token, and no browser takes the proxy's certificate for that of another site.
    by_token = client("127.0.0.1", lambda: TOKEN, hosts=allowed)
    assert await statuses(by_token, {**named(host), **bearer(TOKEN)}) == (200, 200)
    assert await statuses(client("127.0.0.1", certificate=True), named(host)) == (200, 200)


async def test_a_request_without_a_host_is_no_browser_s() -> None:
    async with TestServer(guarded(Guard("127.0.0.1", None))) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert b" 200 " in await reader.readline()
        writer.close()


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.1", "admin.example.com"])
async def test_other_addresses_need_a_token(bind: str) -> None:
    assert await statuses(client(bind, lambda: TOKEN)) == (401, 401)
    assert await statuses(client(bind, lambda: TOKEN), bearer("wrong")) == (401, 401)
    assert await statuses(client(bind, lambda: TOKEN), {"Authorization": TOKEN}) == (401, 401)
    assert await statuses(client(bind, lambda: TOKEN), bearer(TOKEN)) == (200, 200)
    assert await statuses(client(bind, lambda: TOKEN), {"Authorization": f"bearer {TOKEN}"}) == (200, 200)


async def test_header_that_is_no_text_is_a_wrong_token() -> None:
    async with TestServer(guarded(Guard("0.0.0.0", lambda: TOKEN))) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \xff\r\n\r\n")
        assert b" 401 " in await reader.readline()
        writer.close()


async def test_a_client_certificate_replaces_the_token() -> None:
    assert await statuses(client("0.0.0.0", certificate=True)) == (200, 200)


async def test_a_token_that_cannot_be_read_allows_nothing() -> None:
    def missing() -> str:
        raise SecretMissing("the file is empty", env=False)

    assert await statuses(client("0.0.0.0", missing), bearer("")) == (401, 401)


async def test_probes_need_no_token_and_no_known_host() -> None:
    async with client("0.0.0.0", lambda: TOKEN) as asked:
        for path in ("/healthz", "/readyz"):
            assert (await asked.get(path)).status == 200
            assert (await asked.get(path, headers=named("proxy.svc"))).status == 200
            assert (await asked.post(path)).status == 401
    async with client("127.0.0.1") as asked:
        assert (await asked.get("/readyz", headers=named("proxy.svc"))).status == 200


async def test_the_response_says_which_credentials_are_missing() -> None:
    async with client("127.0.0.1", lambda: TOKEN) as asked:
        response = await asked.post("/api/quotas")
        assert "Bearer" in (await response.json())["error"]
        assert response.headers["WWW-Authenticate"] == "Bearer"
    async with client("127.0.0.1") as asked:
        response = await asked.post("/api/quotas", headers=bearer("guessed"))
        assert "admin.token_file" in (await response.json())["error"]
        assert "WWW-Authenticate" not in response.headers
        response = await asked.get("/api/quotas", headers=named("evil.example"))
        assert "admin.hosts" in (await response.json())["error"]


@pytest.mark.parametrize(
    ("certificate", "author"),
    [
        (None, ADMIN_PORT),
        ({}, ADMIN_PORT),
        ({"subject": ((("organizationName", "o"),), (("commonName", "alice"),))}, "alice"),
    ],
)
def test_author_of_a_change(certificate: object, author: str) -> None:
    transport = SimpleNamespace(get_extra_info=lambda name: certificate if name == "peercert" else None)
    request: Any = SimpleNamespace(transport=transport)
    assert author_of(request) == author
