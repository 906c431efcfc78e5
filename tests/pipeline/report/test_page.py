"""The page of the report: self-contained, names as texts, and what it shows of long tables."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from pipeline.report.charts import COLORS, OTHERS_COLOR
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
from pipeline.report.page import INVOICES, SHOWN, render

NOON: Final = datetime(2026, 1, 1, 12)
LABEL: Final = "a / b"
"""The label of the tenant of figures()."""


class Page(HTMLParser):
    """A page's links and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.texts += [data.strip()] if data.strip() else []


def figures(
    hours: list[Hour] | None = None,
    *,
    tenants: dict[tuple[str, str, str], Use] | None = None,
    bound: list[Bound] | None = None,
    charges: list[Charge] | None = None,
    headroom: list[Headroom] | None = None,
    bad_events: int = 0,
    contradicting: int = 0,
) -> Figures:
    """An hour of one tenant, and what a test wants otherwise."""
    return Figures(
        clusters=["local"],
        hours=[Hour(NOON, LABEL, 1, 2)] if hours is None else hours,
        tenants=tenants or {("local", "a", "b"): Use(1, 2, 3)},
        bound=bound or [],
        throttle_hours={},
        charges=charges or [],
        currency="EUR",
        headroom=headroom or [],
        bad_events=bad_events,
        contradicting=contradicting,
    )


def test_the_page_needs_nothing_beside_it() -> None:
    page = Page((Path(__file__).parents[1] / "golden/report.html").read_text())
    assert all(reference.startswith("#invoice-") for reference in page.references)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)


HOSTILE: Final = '<script>alert(1)</script>, "&\u202e😀'


def test_names_are_texts_and_no_markup() -> None:
    """Also in the style sheet, which has the names of clusters for the headers of pages."""
    cluster, label = "</style><script>", '"<script>alert(1)</script>, \\"&\\u202e😀" / \u05d0'
    use = Use(1, 2, 3, 4, Decimal("1.00"))
    key = (cluster, HOSTILE, "\u05d0")
    invoice = Invoice(label, *key, [], use, Use(1, 1, 1, 1, Decimal(1)), HOSTILE, HOSTILE)
    made = replace(
        figures([Hour(NOON, label, 1, 2)], tenants={key: use}),
        clusters=[cluster],
        bound=[Bound(label, "<b>", 1, 5, 0, 0)],
        charges=[Charge(cluster, label, Decimal("1.00"), 1, HOSTILE, 1)],
        headroom=[Headroom(label, "<b>", 10.0, 5.0, 9.0)],
        topics=[Topic("<b>", 1, 2, 1, 1)],
        invoices=[invoice],
        has_cost_centers=True,
        before=Before((NOON, NOON), {key: Use(5, 5, 5, 5, Decimal(3))}),
        period=(NOON, NOON + timedelta(hours=1)),
    )
    html = render(made)
    page = Page(html)
    assert "script" not in page.tags
    assert page.tags.count("style") == 1
    assert html.count("</style>") == 1
    assert page.texts.count(label) == 6
    assert page.texts.count("<b>") == 3
    assert "\u202e" not in html


def test_sections_without_figures_are_skipped() -> None:
    few = Page(render(figures()))
    assert not {"Headroom", "Cost"} & set(few.texts)
    charges, headroom = [Charge("local", LABEL, Decimal("1.50"), 1)], [Headroom(LABEL, "q", 10.0, 5.0, 9.0)]
    many = Page(render(figures(charges=charges, headroom=headroom, bad_events=4321)))
    assert {"Headroom", "Cost", "1.50"} <= set(many.texts)
    assert any("4,321" in text for text in many.texts)
    assert not any("4,321" in text for text in few.texts)


def test_what_the_figures_lack_is_counted_by_its_reason() -> None:
    def warnings(bad: int, contradicting: int) -> list[str]:
        page = Page(render(figures(bad_events=bad, contradicting=contradicting)))
        return [text for text in page.texts if re.search(r"\d,\d", text)]

    assert [len(warnings(*counts)) for counts in ((0, 0), (1111, 0), (0, 2222), (1111, 2222))] == [0, 1, 1, 2]
    invalid, contradicting = warnings(1111, 2222)
    assert "1,111" in invalid
    assert "2,222" in contradicting


def test_a_long_table_ends_and_names_the_file_with_all_rows() -> None:
    charges = [Charge("local", f"tenant {place}", Decimal(1), 1) for place in range(SHOWN + 5)]
    page = Page(render(figures(charges=charges)))
    assert [text for text in page.texts if text.startswith("tenant ")] == [
        each.tenant for each in charges[:SHOWN]
    ]
    assert any("chargeback.csv" in text for text in page.texts)
    assert f"All {SHOWN + 5}" in page.texts
    short = Page(render(figures(charges=charges[:SHOWN])))
    assert not any("chargeback.csv" in text for text in short.texts)


def test_tenants_without_a_color_share_one() -> None:
    names = [f"tenant {place}" for place in range(len(COLORS) + 2)]
    hours = [Hour(NOON, f"{name} / c", 1, 0) for name in names[: len(COLORS)]]
    hours.append(Hour(NOON + timedelta(hours=1), OTHERS, 2, 0))
    html = render(figures(hours, tenants={("local", name, "c"): Use(1, 0, 1) for name in names}))
    for color in COLORS:
        assert f'<i class="{color}">' in html
    # In the legend, and beside each of the two.
    assert html.count(f'<i class="{OTHERS_COLOR}">') == 3
    assert OTHERS in Page(html).texts


def test_quotas_without_a_color_share_one() -> None:
    """Their throttle time is in the chart, too."""
    quotas = [f"quota {place}" for place in range(len(COLORS) + 2)]
    found = replace(figures(), bound=[Bound(LABEL, "q", 1, 5, 0, 0)])
    html = render(replace(found, throttle_hours={quota: {NOON: 1000.0} for quota in quotas}))
    assert "quota 0: 1 s" in html
    assert f"{OTHERS}: 2 s" in html


def test_rejections_have_a_chart_of_their_own() -> None:
    found = replace(figures(), bound=[Bound(LABEL, "q", 0, 0, 7, 70)])
    assert "Rejected requests per hour, by quota" not in Page(render(found)).texts
    page = Page(render(replace(found, rejected_hours={"q": {NOON: 7.0}})))
    assert {"Rejected requests per hour, by quota", "2026-01-01 12:00  q: 7"} <= set(page.texts)


def test_an_invoice_shows_its_lines_and_the_period_before() -> None:
    lines = [
        Line("per_gib_in", Decimal("10.500000"), "GiB", Decimal("0.100000"), Decimal("1.05")),
        Line("per_partition_hour", Decimal(1234), "partition-hours", Decimal("0.000500"), Decimal("0.62")),
    ]
    use = Use(10, 20, 30, 1234, Decimal("1.67"))
    invoice = Invoice(LABEL, "local", "a", "", lines, use, Use(5, 0, 30, 1000, Decimal("3.34")), "", "4711")
    before = Before((NOON - timedelta(hours=1), NOON), {})
    made = figures(tenants={("local", "a", "b"): use})
    made = replace(made, invoices=[invoice], charges=[Charge("local", LABEL, Decimal("1.67"), 1234)])
    page = Page(render(replace(made, before=before, period=(NOON, NOON + timedelta(hours=1)))))
    place = page.texts.index("Invoice:")
    assert page.texts[place + 2 : place + 12] == [
        *("User", "a", "Client id", "none", "Cluster", "local", "Cost center", "4711"),
        *("Period (UTC)", "2026-01-01 12:00 to 2026-01-01 13:00"),
    ]
    for row in (
        ["Bytes from clients", "10.500000 GiB", "0.10", "1.05"],
        ["Partition-hours", "1,234 partition-hours", "0.0005", "0.62"],
        ["Total", "1.67"],
        ["Compared with 2026-01-01 11:00 to 2026-01-01 12:00", "Before", "Now", "Change"],
        ["To clients", "0 B", "20 B", "new"],
        ["Amount", "3.34", "1.67", "-50 %"],
    ):
        assert row in [page.texts[start : start + len(row)] for start in range(place, len(page.texts))]
    alone = Page(render(replace(made, invoices=[replace(invoice, before=None)])))
    assert not any(text.startswith("Compared with") for text in alone.texts)


def test_movers_are_of_both_periods() -> None:
    uses = {("local", "gone", "c"): Use(100, 0, 1), ("local", "a", "b"): Use(1, 2, 3)}
    page = Page(render(replace(figures(), before=Before((NOON, NOON), uses))))
    place = page.texts.index("Top movers")
    assert "gone / c" in page.texts[place:]
    assert page.texts[place:].count("-100 %") == 1
    assert LABEL not in page.texts[place : page.texts.index("Tenants", place)]
    equal = Page(render(replace(figures(), before=Before((NOON, NOON), dict(figures().tenants)))))
    assert "Top movers" not in equal.texts


def test_cost_centers_add_up() -> None:
    charges = [
        Charge("local", f"t{place}", Decimal("0.10") * place, 1, "" if place == 3 else f"c{place % 2}")
        for place in range(4)
    ]
    page = Page(render(replace(figures(charges=charges), has_cost_centers=True)))
    place = page.texts.index("By cost center")
    rows = page.texts[place + 4 : place + 16]
    assert rows == ["none", "1", "0.30", "c0", "2", "0.20", "c1", "1", "0.10", "All 3", "4", "0.60"]


def test_without_events_the_page_says_so() -> None:
    page = Page(render(Figures(clusters=[], hours=[], bound=[], throttle_hours={})))
    assert not {"svg", "table"} & set(page.tags)
    assert page.texts.count("Quota report") == 2


def year_of_a_thousand_tenants() -> Figures:
    """Each with a name like a certificate's, and with traffic and throttling in each hour."""
    start, hours = datetime(2025, 1, 1), range(365 * 24)
    users = [f"CN=service-{place:04},OU=Payments,O=Example" for place in range(1000)]
    keys = [("production-1", user, "client") for user in users]
    labels = [f"{user} / {client_id}" for _, user, client_id in keys]
    times = [start + timedelta(hours=hour) for hour in hours]
    quotas = {f"quota_number_{place}": dict.fromkeys(times, 5.0) for place in range(9)}
    use = Use(1 << 40, 1 << 41, 10**9, 123_456, Decimal("1234.56"))
    line = Line("per_gib_in", Decimal("1234.567891"), "GiB", Decimal("0.05"), Decimal("1234.56"))
    period = start, start + timedelta(days=365)
    return Figures(
        clusters=["production-1"],
        hours=[
            Hour(time, label, place, place)
            for time in times
            for place, label in enumerate([*labels[:8], OTHERS])
        ],
        tenants=dict.fromkeys(keys, use),
        bound=[Bound(label, "q", 1, 2, 3, 4) for label in labels],
        throttle_hours=quotas,
        rejected_hours=quotas,
        charges=[Charge("production-1", label, Decimal(1), 1, "4711", 1) for label in labels],
        invoices=[
            Invoice(label, *key, [line] * 4, use, use, "A name", "4711")
            for key, label in zip(keys, labels, strict=True)
        ][:INVOICES],
        has_cost_centers=True,
        before=Before(period, dict.fromkeys(keys, Use(1))),
        period=period,
    )


def test_a_year_of_a_thousand_tenants_has_at_most_5_mb() -> None:
    html = render(year_of_a_thousand_tenants())
    assert len(html.encode()) <= 5_000_000
    assert html.count("<article") == 1000
