"""The page of the report: self-contained, names as texts, and what it shows of long tables."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from pipeline.report.charts import COLORS, OTHERS_COLOR
from pipeline.report.page import OTHERS, SHOWN, Bound, Charge, Figures, Headroom, Hour, render

NOON: Final = datetime(2026, 1, 1, 12)


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
    tenants: dict[str, tuple[int, int, int]] | None = None,
    bound: list[Bound] | None = None,
    charges: list[Charge] | None = None,
    headroom: list[Headroom] | None = None,
    bad_events: int = 0,
    contradicting: int = 0,
) -> Figures:
    """An hour of one tenant, and what a test wants otherwise."""
    return Figures(
        clusters=["local"],
        hours=[Hour(NOON, "a", 1, 2)] if hours is None else hours,
        tenants=tenants or {"a": (1, 2, 3)},
        bound=bound or [],
        throttle_hours={},
        charges=charges or [],
        currency="EUR",
        headroom=headroom or [],
        bad_events=bad_events,
        contradicting=contradicting,
    )


def test_the_page_needs_nothing_beside_it() -> None:
    page = Page((Path(__file__).parent / "golden/report.html").read_text())
    assert page.references == []
    assert not {"script", "link", "img", "iframe"} & set(page.tags)


def test_names_are_texts_and_no_markup() -> None:
    name = '<script>alert(1)</script> / "&'
    page = Page(
        render(
            figures(
                [Hour(NOON, name, 1, 2)],
                tenants={name: (1, 2, 3)},
                bound=[Bound(name, "<b>", 1, 5, 0, 0)],
                charges=[Charge("local", name, Decimal("1.00"), 1)],
                headroom=[Headroom(name, "<b>", 10.0, 5.0, 9.0)],
            )
        )
    )
    assert "script" not in page.tags
    assert page.texts.count(name) == 5
    assert page.texts.count("<b>") == 2


def test_sections_without_figures_are_skipped() -> None:
    few = Page(render(figures()))
    assert not {"Headroom", "Cost"} & set(few.texts)
    charges, headroom = [Charge("local", "a", Decimal("1.50"), 1)], [Headroom("a", "q", 10.0, 5.0, 9.0)]
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
    hours = [Hour(NOON, name, 1, 0) for name in names[: len(COLORS)]]
    hours.append(Hour(NOON + timedelta(hours=1), OTHERS, 2, 0))
    html = render(figures(hours, tenants=dict.fromkeys(names, (1, 0, 1))))
    for color in COLORS:
        assert f"background: {color}" in html
    # In the legend, and beside each of the two.
    assert html.count(f"background: {OTHERS_COLOR}") == 3
    assert OTHERS in Page(html).texts


def test_quotas_without_a_color_share_one() -> None:
    """Their throttle time is in the chart, too."""
    quotas = [f"quota {place}" for place in range(len(COLORS) + 2)]
    found = replace(figures(), bound=[Bound("a", "q", 1, 5, 0, 0)])
    html = render(replace(found, throttle_hours={quota: {NOON: 1000.0} for quota in quotas}))
    assert "quota 0: 1 s" in html
    assert f"{OTHERS}: 2 s" in html


def test_without_events_the_page_says_so() -> None:
    page = Page(render(Figures(clusters=[], hours=[], bound=[], throttle_hours={})))
    assert not {"svg", "table"} & set(page.tags)
    assert page.texts.count("Quota report") == 2
