"""What pages share: the header of printed pages, and texts of periods."""

from datetime import datetime

from pipeline.report.templates import ends, print_header, render_template
from tests.pipeline.report.test_invoice_page import BILLING, INVOICE


def test_a_name_in_the_header_of_printed_pages_ends_neither_its_string_nor_the_style_sheet() -> None:
    header = print_header(["Report", 'a"b\\', "</style>", "", "\u05d0\n"])
    assert header.count('"') == 4
    assert header.count("\\") == len('"\\</>\u05d0\n')
    assert "</" not in header
    assert "Report  |  a" in header
    # No part is empty.
    assert "|    |" not in header


def test_the_ends_of_a_period() -> None:
    period = datetime(2026, 3, 1), datetime(2026, 4, 1, 12, 30, 5)
    assert ends(period) == ["2026-03-01 00:00", "2026-04-01 12:30:05"]
    assert ends(None) is None


def test_a_page_has_the_style_sheet_and_no_indentation() -> None:
    page = render_template(
        "invoice_page.html",
        "/* header */",
        title="t",
        invoice=INVOICE,
        currency="EUR",
        items={"per_gib_in": "Bytes"},
        period=None,
        before_period=ends(BILLING.before_period),
        billed=True,
    )
    assert ":root {" in page
    assert "/* header */</style>" in page
    assert not any(line.startswith(" ") for line in page.splitlines())
