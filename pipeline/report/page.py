"""Renders the report from a template."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final

import jinja2

from pipeline.report import units
from pipeline.report.charts import COLORS, OTHERS_COLOR, WIDTH, Chart, Span, heat_map, stacked_columns

SHOWN: Final = 20
"""Rows of a table in the page; the CSV files have all rows."""
OTHERS: Final = "others"
"""No tenant has this label."""


@dataclass(frozen=True, slots=True)
class Hour:
    """The bytes of a tenant in an hour; OTHERS stands for all tenants without a color."""

    hour: datetime
    tenant: str
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class Bound:
    """What a quota did to a tenant over all hours."""

    tenant: str
    quota: str
    throttled_requests: int
    throttle_ms: int
    rejected_requests: int
    rejected_bytes: int


@dataclass(frozen=True, slots=True)
class Charge:
    """What a tenant pays for its use of a cluster."""

    cluster: str
    tenant: str
    amount: Decimal
    partition_hours: int


@dataclass(frozen=True, slots=True)
class Headroom:
    """The use of a bucket and its limit, in bytes/s on the busiest broker."""

    tenant: str
    quota: str
    limit: float
    p99_rate: float
    max_rate: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The content of the page. `throttle_hours` is the throttle time in ms by quota and hour."""

    clusters: Sequence[str]
    hours: Sequence[Hour]
    bound: Sequence[Bound]
    throttle_hours: Mapping[str, Mapping[datetime, float]]
    charges: Sequence[Charge] = ()
    currency: str = ""
    headroom: Sequence[Headroom] = ()
    bad_events: int = 0
    contradicting: int = 0
    """Events that differ from an earlier one with the same identity."""
    tenants: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """bytes_in, bytes_out and requests of each tenant, largest first."""
    period: tuple[datetime, datetime] | None = None
    """UTC; the end is exclusive."""


def render(figures: Figures) -> str:
    """Render the page, self-contained."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipeline.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        size=units.size, rate=units.rate, count=units.count, duration=units.duration, percent=units.percent
    )
    span = _span(figures)
    style = (environment.loader or jinja2.DictLoader({})).get_source(environment, "page.css")[0]
    return environment.get_template("page.html").render(
        figures=figures,
        style=style,
        width=WIDTH,
        shown=SHOWN,
        totals=_totals(figures),
        colors=_colors(figures.tenants),
        charts=_charts(figures),
        quota_colors=_colors(figures.throttle_hours),
        bills=_bills(figures),
        span=span,
        period=None if figures.period is None else [units.instant(end) for end in figures.period],
    )


def _span(figures: Figures) -> Span:
    hours = [hour.hour for hour in figures.hours]
    return (min(hours), max(hours)) if hours else None


def _bills(figures: Figures) -> dict[str, Decimal]:
    """The sum of the amounts of each cluster."""
    bills: dict[str, Decimal] = {}
    for charge in figures.charges:
        bills[charge.cluster] = bills.get(charge.cluster, Decimal(0)) + charge.amount
    return dict(sorted(bills.items()))


def _totals(figures: Figures) -> dict[str, int]:
    return {
        "bytes_in": sum(found[0] for found in figures.tenants.values()),
        "bytes_out": sum(found[1] for found in figures.tenants.values()),
        "requests": sum(found[2] for found in figures.tenants.values()),
        "throttle_ms": sum(bound.throttle_ms for bound in figures.bound),
        "rejected_bytes": sum(bound.rejected_bytes for bound in figures.bound),
    }


def _colors(names: Iterable[str]) -> dict[str, str]:
    """A color for each of the first names, and one for the others."""
    listed = list(names)
    colors = dict(zip(listed, COLORS, strict=False))
    return {**colors, OTHERS: OTHERS_COLOR} if len(listed) > len(COLORS) else colors


def _charts(figures: Figures) -> dict[str, Chart]:
    colors = _colors(figures.tenants)
    series_in: dict[str, dict[datetime, float]] = {name: defaultdict(float) for name in colors}
    series_out: dict[str, dict[datetime, float]] = {name: defaultdict(float) for name in colors}
    heat: dict[datetime, float] = defaultdict(float)
    for hour in figures.hours:
        series_in[hour.tenant][hour.hour] += hour.bytes_in
        series_out[hour.tenant][hour.hour] += hour.bytes_out
        heat[hour.hour] += hour.bytes_in + hour.bytes_out
    quota_colors = _colors(figures.throttle_hours)
    span = _span(figures)
    waits: dict[str, dict[datetime, float]] = {name: defaultdict(float) for name in quota_colors}
    for quota, values in figures.throttle_hours.items():
        for time, milliseconds in values.items():
            waits[quota if quota in quota_colors else OTHERS][time] += milliseconds
    return {
        "in": stacked_columns(series_in, colors, units.size, units.SIZES, span),
        "out": stacked_columns(series_out, colors, units.size, units.SIZES, span),
        "heat": heat_map(heat, units.size),
        "throttle": stacked_columns(waits, quota_colors, units.duration, units.TIMES, span, 190.0),
    }
