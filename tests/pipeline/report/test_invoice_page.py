"""The page of one invoice, and the names of files for any tenant."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from pipeline.report.figures import Invoice, Line, Use
from pipeline.report.invoice_page import Billing, invoice_file, render_invoice
from tests.pipeline.report.test_page import HOSTILE, Page

MARCH: Final = datetime(2026, 3, 1)
BILLING: Final = Billing("EUR", (MARCH, MARCH + timedelta(days=31)), (MARCH - timedelta(days=28), MARCH))
INVOICE: Final = Invoice(
    "alice / billing",
    *("local", "alice", "billing"),
    lines=[Line("per_gib_in", Decimal("10.5"), "GiB", Decimal("0.10"), Decimal("1.05"))],
    use=Use(10, 20, 30, 1234, Decimal("1.05")),
    before=Use(5, 0, 30, 1000, Decimal("2.10")),
    name="Billing team",
    cost_center="4711",
)


def test_the_page_has_the_lines_the_period_and_the_comparison() -> None:
    html = render_invoice(INVOICE, BILLING)
    page = Page(html)
    assert {"script", "link", "img", "a"}.isdisjoint(page.tags)
    assert page.tags.count("h1") == 1
    assert "Invoice, Billing team, 2026-03-01 00:00 to 2026-04-01 00:00 UTC" in page.texts
    start = page.texts.index("Invoice:")
    assert page.texts[start + 1 : start + 12] == [
        *("Billing team", "User", "alice", "Client id", "billing", "Cluster", "local"),
        *("Cost center", "4711", "Period (UTC)", "2026-03-01 00:00 to 2026-04-01 00:00"),
    ]
    for row in (
        ["Amount (EUR)", "Bytes from clients", "10.500000 GiB", "0.10", "1.05", "Total", "1.05"],
        ["Compared with 2026-02-01 00:00 to 2026-03-01 00:00", "Before", "Now", "Change"],
        ["Amount", "2.10", "1.05", "-50 %"],
    ):
        assert row in [page.texts[place : place + len(row)] for place in range(len(page.texts))]


def test_the_page_says_whether_the_amount_before_was_billed() -> None:
    def notes(billed: bool, before: Use | None) -> list[str]:
        page = Page(render_invoice(replace(INVOICE, before=before), replace(BILLING, billed=billed)))
        return [text for text in page.texts if text.startswith("The amount before")]

    assert [
        len(notes(*given)) for given in ((False, INVOICE.before), (True, INVOICE.before), (False, None))
    ] == [
        1,
        0,
        0,
    ]


def test_names_are_texts_and_no_markup() -> None:
    name = "</style></title><script>"
    html = render_invoice(
        replace(INVOICE, tenant=name, cluster=name, user=HOSTILE, client_id=name, name="", cost_center=name),
        BILLING,
    )
    page = Page(html)
    assert "script" not in page.tags
    assert html.count("</style>") == html.count("</title>") == 1
    assert page.texts.count(name) == 4


def test_each_tenant_has_a_file_name_that_every_file_system_takes() -> None:
    parts = [
        *("a", "A", "a,b", "a/b", "a\nb", "../../etc/passwd", ".", "..", "", "con", "nul.", "-rf", "=1+1"),
        *("\u05d0", "\U0001f600", "x" * 500, "x" * 501, "a\0b", "a\\b", "a?b", "a:b", "%2e", "\ud800"),
    ]
    names = [
        invoice_file((cluster, user, client_id))
        for cluster in ("c", "C", "")
        for user in parts
        for client_id in parts
    ]
    assert len({name.lower() for name in names}) == len(names)
    assert all(re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9-]{,79}-)?[0-9a-f]{32}\.html", name) for name in names)
    assert max(map(len, names)) <= 143
    readable = invoice_file(("prod", "alice", "billing"))
    assert readable.startswith("prod-alice-billing-")
    assert readable == invoice_file(("prod", "alice", "billing"))
    assert invoice_file(("a b", "c", "d")) != invoice_file(("a", "b c", "d"))
