"""Renders the report from a template."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final

from pipeline.report import units
from pipeline.report.charts import COLORS, OTHERS_COLOR, WIDTH, Chart, Span, heat_map, stacked_columns
from pipeline.report.figures import OTHERS, Figures, Key
from pipeline.report.labels import tenant_label
from pipeline.report.movers import Mover, movers
from pipeline.report.templates import ITEMS, ends, print_header, render_template

SHOWN: Final = 20
"""Rows of a table in the page; the CSV files have all rows."""
INVOICES: Final = 1200
"""Invoices in the page. Each has about 2 KB, and a report of a year has at most 5 MB."""
Series = Mapping[str, Mapping[datetime, float]]


def render(figures: Figures) -> str:
    """Render the page, self-contained."""
    period, before = ends(figures.period), figures.before
    return render_template(
        "page.html",
        print_header(_printed(figures, period)),
        figures=figures,
        width=WIDTH,
        shown=SHOWN,
        items=ITEMS,
        totals=_totals(figures),
        labels=_labels(figures),
        colors=_colors(_tenants(figures)),
        charts=_charts(figures),
        quota_colors=_colors(figures.throttle_hours),
        rejected_colors=_colors(figures.rejected_hours),
        movers=_movers(figures),
        bills=_bills(figures),
        cost_centers=_cost_centers(figures),
        span=_span(figures),
        period=period,
        before_period=None if before is None else ends(before.period),
    )


def _printed(figures: Figures, period: list[str] | None) -> list[str]:
    """The header of each printed page."""
    return [
        "Quota report",
        ", ".join(figures.clusters),
        *([f"{period[0]} to {period[1]} UTC"] if period else []),
    ]


def _labels(figures: Figures) -> dict[Key, str]:
    """The labels of the tenants of this period, and of the one before."""
    before = {} if figures.before is None else figures.before.uses
    return {
        (cluster, user, client_id): tenant_label(user, client_id, cluster if figures.several else None)
        for cluster, user, client_id in {**figures.tenants, **before}
    }


def _tenants(figures: Figures) -> list[str]:
    labels = _labels(figures)
    return [labels[tenant] for tenant in figures.tenants]


def _movers(figures: Figures) -> list[Mover]:
    return [] if figures.before is None else movers(figures.tenants, figures.before.uses)


def _span(figures: Figures) -> Span:
    hours = [hour.hour for hour in figures.hours]
    return (min(hours), max(hours)) if hours else None


def _bills(figures: Figures) -> dict[str, Decimal]:
    """The sum of the amounts of each cluster."""
    bills: dict[str, Decimal] = {}
    for charge in figures.charges:
        bills[charge.cluster] = bills.get(charge.cluster, Decimal(0)) + charge.amount
    return dict(sorted(bills.items()))


def _cost_centers(figures: Figures) -> dict[str, tuple[int, Decimal]]:
    """The number of tenants of each cost center, and the sum of their amounts, largest first."""
    sums: dict[str, tuple[int, Decimal]] = {}
    for charge in figures.charges:
        count, amount = sums.get(charge.cost_center, (0, Decimal(0)))
        sums[charge.cost_center] = count + 1, amount + charge.amount
    return dict(sorted(sums.items(), key=lambda found: (-found[1][1], found[0])))


def _totals(figures: Figures) -> dict[str, int]:
    return {
        "bytes_in": sum(use.bytes_in for use in figures.tenants.values()),
        "bytes_out": sum(use.bytes_out for use in figures.tenants.values()),
        "requests": sum(use.requests for use in figures.tenants.values()),
        "throttle_ms": sum(bound.throttle_ms for bound in figures.bound),
        "rejected_bytes": sum(bound.rejected_bytes for bound in figures.bound),
    }


def _colors(names: Iterable[str]) -> dict[str, str]:
    """A color for each of the first names, and one for the others."""
    listed = list(names)
    colors = dict(zip(listed, COLORS, strict=False))
    return {**colors, OTHERS: OTHERS_COLOR} if len(listed) > len(COLORS) else colors


def _charts(figures: Figures) -> dict[str, Chart]:
    """Return the charts of the page by name."""
    colors = _colors(_tenants(figures))
    series_in: dict[str, dict[datetime, float]] = {name: defaultdict(float) for name in colors}
    series_out: dict[str, dict[datetime, float]] = {name: defaultdict(float) for name in colors}
    heat: dict[datetime, float] = defaultdict(float)
    for hour in figures.hours:
        series_in[hour.tenant][hour.hour] += hour.bytes_in
        series_out[hour.tenant][hour.hour] += hour.bytes_out
        heat[hour.hour] += hour.bytes_in + hour.bytes_out
    span = _span(figures)
    throttle, rejected = _with_others(figures.throttle_hours), _with_others(figures.rejected_hours)
    return {
        "in": stacked_columns(series_in, colors, units.size, units.SIZES, span),
        "out": stacked_columns(series_out, colors, units.size, units.SIZES, span),
        "heat": heat_map(heat, units.size),
        "throttle": stacked_columns(throttle, _colors(throttle), units.duration, units.TIMES, span, 190.0),
        "rejected": stacked_columns(rejected, _colors(rejected), units.count, units.COUNTS, span, 190.0),
    }


def _with_others(hours: Series) -> Series:
    """The series with a color of their own, and the sum of the others."""
    colors = _colors(hours)
    found: dict[str, dict[datetime, float]] = {name: defaultdict(float) for name in colors}
    for name, values in hours.items():
        for time, value in values.items():
            found[name if name in colors else OTHERS][time] += value
    return found
