"""The templates of HTML pages, with the filters that they share."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

import jinja2

from pipeline.report import units
from pipeline.report.labels import name_alone

ITEMS: Final = {
    "per_gib_in": "Bytes from clients",
    "per_gib_out": "Bytes to clients",
    "per_million_requests": "Requests",
    "per_partition_hour": "Partition-hours",
}
"""What an invoice calls the keys of the price file."""
_FILTERS: Final[dict[str, Any]] = {
    "size": units.size,
    "rate": units.rate,
    "count": units.count,
    "duration": units.duration,
    "percent": units.percent,
    "change": units.change,
    "quantity": units.quantity,
    "price": units.price,
    "name": name_alone,
}


def render_template(name: str, print_header: str, **values: object) -> str:
    """Render a self-contained page. The rules in `print_header` are added to its style sheet."""
    page = _environment().get_template(name).render(style=_style(), print_header=print_header, **values)
    # The indentation of a thousand invoices is a tenth of the page.
    return "".join(f"{line.strip()}\n" for line in page.split("\n"))


def print_header(parts: Sequence[str]) -> str:
    """The rules that print these texts and the number of the page at the top of each page."""
    header = _css_text("  |  ".join(filter(None, parts)))
    return (
        f"@page {{ @top-left {{ content: {header}; }} "
        '@top-right { content: counter(page) " / " counter(pages); white-space: nowrap; } }\n'
    )


def ends(period: tuple[datetime, datetime] | None) -> list[str] | None:
    """The ends of a period as texts."""
    return None if period is None else [units.instant(end) for end in period]


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipeline.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)
    return environment


@cache
def _style() -> str:
    environment = _environment()
    return (environment.loader or jinja2.DictLoader({})).get_source(environment, "page.css")[0]


def _css_text(text: str) -> str:
    """A string of CSS in which names cannot end the string, or the style sheet."""
    letters = (
        letter if letter.isascii() and (letter.isalnum() or letter in " -:.,|") else f"\\{ord(letter):06x}"
        for letter in text
    )
    return f'"{"".join(letters)}"'
