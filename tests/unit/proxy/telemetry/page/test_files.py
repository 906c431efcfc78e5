"""The page of the admin port: who gets its files, and what a real browser shows."""

import asyncio
import re

import pytest
from aiohttp.test_utils import TestClient, TestServer

from proxy.quota.identity import QuotaEntity
from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.console import Respond, no_console
from proxy.telemetry.guard import Guard
from proxy.telemetry.http import AdminSite
from proxy.telemetry.page.files import FILES
from proxy.telemetry.quota_table import QuotaTable
from tests.support.process.browser import CHROMIUM, browser_page
from tests.support.server.consoles import ALICE, PRODUCER, ConsoleKit

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


def site(guard: Guard | None = None, console: Respond = no_console) -> TestServer:
    pages = AdminSite(
        families=tuple,
        problems=list,
        warnings=lambda: ["a warning"],
        table=QuotaTable(lambda: BUCKETS, lambda: 1.0),
        console=console,
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
    shown = re.findall(r'<td class="entity"[^>]*><button[^>]*>(.*?)</button>', dom)
    assert len(shown) == rows
    assert ("hidden" in re.findall(r'<form id="login"[^>]*>', dom)[0]) is bool(rows)
    if rows:
        # Throttled rows come first.
        assert shown == ['client-id &lt;img src=x onerror="document.title=1"&gt;', "user alice"]
        assert "<li>a warning</li>" in dom


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
async def test_a_quota_is_explained_set_and_returned_to_the_file_in_a_browser() -> None:
    """With the token, which the page asks for."""
    kit = ConsoleKit()
    guard = Guard("127.0.0.1", lambda: "t0ken")
    async with site(guard, kit.console.reply) as server, browser_page() as page:
        await page.open(str(server.make_url("/#quotas")))
        await page.wait_for("document.querySelectorAll('#configured tr').length === 5")
        await page.wait_for("Object.keys(names).length > 0")
        buttons = "[...document.querySelectorAll('#configured button')]"
        await page.run(f"{buttons}.find((button) => button.textContent === 'user alice').click()")
        wins = "document.querySelector('.explained .wins')?.textContent"
        await page.wait_for(f"{wins} === 'user alice: 1000 B in the file'")
        await page.fill("#change-quota", PRODUCER)
        await page.fill("#change-value", "77")
        await page.click("#change button[value=set]")
        await page.wait_for("document.querySelector('#login').hidden === false")
        await page.wait_for(
            "document.querySelector('#change-result').innerText.includes('Nothing has changed')"
        )
        assert await page.run("document.activeElement.id") == "token"
        assert kit.log.records == []
        await page.fill("#token", "t0ken")
        await page.click("#login button")
        await page.click("#change button[value=set]")
        await page.wait_for("document.querySelector('#change-result.done')")
        assert kit.store.effective[ALICE] == {PRODUCER: 77.0}
        [(_, setting)] = kit.log.records
        assert setting.by == "admin-port"
        await page.fill("#change-value", "88")
        await page.fill("#change-end", "2099-01-01T00:00")
        await page.click("#change button[value=set]")
        await page.wait_for(
            "document.querySelector('.explained .wins')?.textContent.includes('88 B by tools until')"
        )
        assert kit.store.effective[ALICE] == {PRODUCER: 88.0}
        assert kit.store.lasting(ALICE) == {PRODUCER: 77.0}
        await page.fill("#change-value", "1MB/s")
        await page.click("#change button[value=set]")
        await page.wait_for("document.querySelector('#change-result.problem')?.innerText.includes('1000000')")
        await page.click("#change button[value=file]")
        await page.wait_for("document.querySelector('#change-result.done')")
        assert kit.store.effective[ALICE] == {PRODUCER: 1000.0}
        await page.look(320, 800, "dark")
        for view in ("#use", "#quotas"):
            await page.run(f"location.hash = '{view}'")
            # Nothing is wider than a small phone.
            await page.wait_for("document.documentElement.scrollWidth === 320")
        await page.run("location.hash = '#process'")
        await page.wait_for("document.querySelector('#process-facts').innerText.includes('0 of 5')")
        await page.wait_for("document.querySelector('#instances').innerText.includes('proxy-a (this proxy)')")
        shares = "document.querySelector('#shares td.layers').textContent"
        await page.wait_for(f"{shares} === 'proxy-b 750 B, proxy-a 250 B'")
        await page.wait_for("document.documentElement.scrollWidth === 320")
        await server.close()
        await page.wait_for("element('state').textContent.startsWith('The proxy cannot be reached; ')")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
async def test_the_page_can_be_used_by_keyboard_and_on_a_phone() -> None:
    """The row that has the focus keeps it when the page is read again; what a row shows is in view."""
    kit = ConsoleKit()
    async with site(Guard("127.0.0.1", lambda: "t0ken"), kit.console.reply) as server, browser_page() as page:
        await page.look(320, 200)
        await page.open(str(server.make_url("/#quotas")))
        await page.wait_for("document.querySelectorAll('#configured tr').length === 5")
        buttons = "[...document.querySelectorAll('#configured button')]"
        row = f"{buttons}.find((each) => each.textContent === 'user alice')"
        focused = "document.activeElement.textContent"
        await page.run(f"{row}.focus()")
        await page.run("refresh()")
        assert await page.run(focused) == "user alice"
        await page.run(f"{row}.click()")
        assert await page.run(focused) == "user alice"  # the title
        assert await page.run("document.activeElement.id") == "detail-title"
        assert 0 <= await page.run("document.activeElement.getBoundingClientRect().top") < 200
        await page.click("#detail-close")
        assert await page.run(f"document.activeElement === {row}")
        await page.run(f"{row}.click()")
        await page.press("Escape")
        assert await page.run("element('detail').hidden")
        assert await page.run(f"document.activeElement === {row}")
        # Without the heads of the table, which a phone does not show.
        await page.run("location.hash = '#use'")
        first = "document.querySelector('#rows button')?.textContent"
        await page.wait_for(f"{first}?.startsWith('client-id')")
        assert await page.run("document.querySelector('#sort-by').checkVisibility()")
        await page.fill("#sort-by", "limit")
        assert await page.run(first) == "user alice"
        # A field shows no line break, but the change concerns the name that was selected.
        await page.wait_for("Object.keys(names).length > 0")
        await page.run("token = 't0ken'")
        await page.run(f"openDetail({{user: ' a\\nb'}}, null, '{PRODUCER}')")
        assert await page.run("document.querySelector('#detail-title').textContent") == r'user " a\nb"'
        await page.fill("#change-value", "5")
        await page.click("#change button[value=set]")
        await page.wait_for("document.querySelector('#change-result.done')")
        assert kit.store.effective[QuotaEntity(" a\nb", None)] == {PRODUCER: 5.0}
