"""The page of the admin port: who gets its files, and what a real browser shows."""

import asyncio
import re
import shutil

import pytest
from aiohttp.test_utils import TestClient, TestServer

from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.guard import Guard
from proxy.telemetry.http import AdminSite
from proxy.telemetry.page.files import FILES

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = '<img src=x onerror="document.title=1">'
BUCKETS = [
    (1, BucketState(quota="producer_byte_rate", user="alice", limit=1048576.0, rate=524288.0)),
    (
        2,
        BucketState(
            quota="consumer_byte_rate", client_id=HOSTILE, limit=10.0, rate=10.0, throttled_until=2.0
        ),
    ),
]


def site(guard: Guard | None = None) -> TestServer:
    pages = AdminSite(
        families=tuple,
        problems=list,
        warnings=lambda: ["a warning"],
        buckets=lambda: BUCKETS,
        time=lambda: 1.0,
        guard=guard,
    )
    return TestServer(pages.application())


@pytest.mark.parametrize("path", FILES)
async def test_its_files_need_no_token(path: str) -> None:
    async with TestClient(site(Guard("0.0.0.0", lambda: "t0ken"))) as client:
        response = await client.get(path)
        assert response.status == 200
        assert response.content_type == FILES[path][1]
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert "alice" not in await response.text()
        assert (await client.post(path)).status == 401


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize(
    ("guard", "rows"), [(None, 2), (Guard("0.0.0.0", lambda: "t0ken"), 0)], ids=["loopback", "with a token"]
)
async def test_a_browser_shows_the_buckets_and_takes_no_name_for_html(guard: Guard | None, rows: int) -> None:
    async with site(guard) as server:
        arguments = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=10000",
            "--dump-dom",
        )
        browser = await asyncio.create_subprocess_exec(
            str(CHROMIUM),
            *arguments,
            str(server.make_url("/")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        dom = (await browser.communicate())[0].decode()
    assert "<title>quota-proxy</title>" in dom
    assert "<img" not in dom
    shown = re.findall(r'<td class="entity"[^>]*>(.*?)</td>', dom)
    assert len(shown) == rows
    assert ("hidden" in re.findall(r'<form id="login"[^>]*>', dom)[0]) is bool(rows)
    if rows:
        # Throttled rows come first.
        assert shown == ['client-id &lt;img src=x onerror="document.title=1"&gt;', "user alice"]
        assert "<li>a warning</li>" in dom
