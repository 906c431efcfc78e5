"""The page in Chromium: axe-core finds nothing, nothing overflows, and each printed page has a header.

These tests need Chromium, npm, which fetches axe-core, and for the print pdftotext (poppler-utils).
"""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from pipeline.report.figures import (
    OTHERS,
    Before,
    Bound,
    Charge,
    Figures,
    Headroom,
    Hour,
    Invoice,
    Line,
    Topic,
    Use,
)
from pipeline.report.invoice_page import Billing, render_invoice
from pipeline.report.labels import tenant_label
from pipeline.report.page import render

CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
AXE: Final = "axe-core@4.10.2"
LIGHT, DARK = "1", "0"
"""Chromium's preferredColorScheme."""
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
LONG: Final = (
    "CN=settlement-17.eu-west-1.prod.internal,OU=Payments Platform Engineering,O=Example AG,ST=Hessen,C=DE"
)
FEW_USERS: Final = [
    "alice",
    LONG,
    "\u05d0\u05d1",
    "\U0001f600",
    "<i>,\"'",
    *[f"user-{place}" for place in range(5)],
]
"""More than a chart distinguishes. axe-core takes long for each row, and says the same of all."""
USERS: Final = [*FEW_USERS, *[f"user-{place}" for place in range(5, 25)]]
"""Those whose tables take several printed pages."""
FRAME: Final = """<!DOCTYPE html>
<iframe src="page.html" width="{width}" height="900"></iframe><pre></pre>
<script>
addEventListener("message", (event) => {{ document.querySelector("pre").textContent = event.data; }});
</script>"""
RUN: Final = """<script>axe.run().then((found) => {
  const page = document.documentElement;
  parent.postMessage(JSON.stringify({
    violations: found.violations.map((each) => `${each.id}: ${each.nodes[0].html}`),
    passes: found.passes.length, wide: page.scrollWidth, width: page.clientWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches}), "*"); });</script>"""


def every_section(users: Sequence[str]) -> Figures:
    """A report of two days with an outlier, and with every section and hostile or long names."""
    start = datetime(2026, 3, 1)
    times = [start + timedelta(hours=hour) for hour in range(48)]
    keys = [("production-1", user, "" if place % 2 else "billing") for place, user in enumerate(users)]
    labels = [tenant_label(user, client_id) for _, user, client_id in keys]
    use = Use(1 << 40, 1 << 41, 10**9, 5000, Decimal("617.28"))
    hours = [Hour(time, label, 1 << 30, 1 << 29) for time in times for label in [*labels[:8], OTHERS]]
    hours[20] = replace(hours[20], bytes_in=1 << 40)
    line = Line("per_gib_in", Decimal("1024.5"), "GiB", Decimal("0.10"), Decimal("617.28"))
    quota = dict.fromkeys(times, 5000.0)
    return Figures(
        clusters=["production-1"],
        hours=hours,
        tenants=dict.fromkeys(keys, use),
        bound=[Bound(label, "producer_byte_rate", 1, 2, 3, 4) for label in labels],
        throttle_hours={"producer_byte_rate": quota},
        rejected_hours={"producer.byte.rate": quota},
        charges=[Charge("production-1", label, Decimal("617.28"), 5, "4711 Payments", 1) for label in labels],
        invoices=[
            Invoice(label, *key, [line] * 4, use, use, "Payments", "4711 Payments")
            for key, label in zip(keys, labels, strict=True)
        ],
        has_cost_centers=True,
        currency="EUR",
        headroom=[
            Headroom(label, "producer_byte_rate", 1e6, 1e6 * part, 1e6)
            for label in labels
            for part in (0.5, 2)
        ],
        topics=[Topic("orders", 1, 1, 1, 1), Topic("", 1, 1, 1, 0)],
        topic_count=2,
        bad_events=12,
        before=Before(
            (start - timedelta(days=2), start), dict.fromkeys(keys, Use(1, 1, 1, 1, Decimal("1.00")))
        ),
        period=(start, start + timedelta(days=2)),
    )


@pytest.fixture(scope="module")
def page() -> str:
    return render(every_section(FEW_USERS))


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of axe.min.js."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm is installed, which fetches axe-core")
    folder = tmp_path_factory.mktemp("axe")
    found = subprocess.run(
        [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, AXE],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        pytest.skip(f"npm cannot fetch {AXE}: {(found.stderr or found.stdout).strip()[-200:]}")
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


def chromium(*arguments: str) -> str:
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def invoice() -> str:
    """The invoice of the tenant with the longest name."""
    made = every_section(FEW_USERS)
    (found,) = [each for each in made.invoices if each.user == LONG]
    before = None if made.before is None else made.before.period
    return render_invoice(replace(found, name=""), Billing("EUR", made.period, before))


@pytest.mark.parametrize(("scheme", "width"), [(LIGHT, 1200), (DARK, 390)], ids=["light", "dark-phone"])
@pytest.mark.parametrize("document", ["page", "invoice"])
def test_axe_finds_nothing_and_nothing_overflows(
    request: pytest.FixtureRequest, axe: str, tmp_path: Path, document: str, scheme: str, width: int
) -> None:
    """On a screen and on a phone. Chromium's window is at least 500 wide, so the page is in a frame."""
    page: str = request.getfixturevalue(document)
    (tmp_path / "page.html").write_text(page.replace("</body>", f"<script>{axe}</script>{RUN}</body>"))
    (tmp_path / "frame.html").write_text(FRAME.format(width=width))
    dom = chromium(
        "--virtual-time-budget=60000",
        f"--blink-settings=preferredColorScheme={scheme}",
        f"--window-size={width + 100},1000",
        "--dump-dom",
        (tmp_path / "frame.html").as_uri(),
    )
    found: dict[str, Any] = json.loads(html.unescape(re.findall(r"<pre>(.*?)</pre>", dom, re.DOTALL)[0]))
    assert found["violations"] == []
    assert found["passes"] > 10
    assert found["dark"] == (scheme == DARK)
    assert width - 20 <= found["width"] <= width
    assert found["wide"] == found["width"]


def printed(page: str, folder: Path) -> list[str]:
    """The text of each printed page."""
    (folder / "page.html").write_text(page)
    pdf = folder / "page.pdf"
    chromium("--no-pdf-header-footer", f"--print-to-pdf={pdf}", (folder / "page.html").as_uri())
    text = subprocess.run(
        ["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True
    ).stdout
    return text.split("\f")[:-1]


NEEDS_PDFTOTEXT: Final = pytest.mark.skipif(
    shutil.which("pdftotext") is None, reason="no pdftotext is installed (poppler-utils)"
)


@NEEDS_PDFTOTEXT
def test_each_printed_page_has_a_header_and_each_invoice_a_page(tmp_path: Path) -> None:
    sheets = printed(render(every_section(USERS)), tmp_path)
    header = "Quota report | production-1 | 2026-03-01 00:00 to 2026-03-03 00:00 UTC"
    for number, sheet in enumerate(sheets, 1):
        first = sheet.strip().splitlines()[0]
        assert first.startswith(header)
        assert first.endswith(f"{number} / {len(sheets)}")
    assert [sheet.count("Invoice:") for sheet in sheets if "Invoice:" in sheet] == [1] * len(USERS)
    assert "production-1" in sheets[-2]


@NEEDS_PDFTOTEXT
def test_an_invoice_of_its_own_is_one_printed_page(invoice: str, tmp_path: Path) -> None:
    (sheet,) = printed(invoice, tmp_path)
    assert sheet.strip().startswith("Invoice | CN=settlement-17.eu-west-1.prod.internal")
    assert "2026-03-01 00:00 to 2026-03-03 00:00" in sheet
    assert re.search(r"\b1 */ *1\b", sheet)
    # Four lines, the total, and the amount before and now.
    assert sheet.count("617.28") == 7
