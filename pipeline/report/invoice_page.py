"""Renders the invoice of a tenant as a page of its own, and names its file."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Final

from pipeline.report.figures import Invoice, Key, Period
from pipeline.report.labels import name_alone
from pipeline.report.templates import ITEMS, ends, print_header, render_template

_OTHER_LETTERS: Final = re.compile(r"[^A-Za-z0-9]+")
_LONGEST: Final = 80
"""Letters of the names in a file's name. File systems allow 255 in all, some 143."""
_DIGITS: Final = 32
"""Hexadecimal digits: a tenant, which chooses its names, cannot find two with the same digits."""


@dataclass(frozen=True, slots=True)
class Billing:
    """What the invoices of a report have in common. `before_period`: the period with which they compare;
    `billed`: whether its amounts are those of a bill, and not computed with the prices of this one.
    """

    currency: str
    period: Period | None = None
    before_period: Period | None = None
    billed: bool = False


def invoice_file(tenant: Key) -> str:
    """Return the name of the tenant's file, which is the same in each report.

    Any tenant has a valid name on any file system. The names of two tenants differ, also where upper and
    lower case are the same.
    """
    readable = _OTHER_LETTERS.sub("-", " ".join(tenant))[:_LONGEST].strip("-")
    digits = hashlib.sha256(json.dumps(tenant).encode()).hexdigest()[:_DIGITS]
    return "-".join(filter(None, [readable, digits])) + ".html"


def render_invoice(invoice: Invoice, billing: Billing) -> str:
    """Render the page, self-contained."""
    period = ends(billing.period)
    payer = name_alone(invoice.name) if invoice.name else invoice.tenant
    title = ["Invoice", payer, *([f"{period[0]} to {period[1]} UTC"] if period else [])]
    return render_template(
        "invoice_page.html",
        print_header(title),
        title=", ".join(title),
        invoice=invoice,
        currency=billing.currency,
        items=ITEMS,
        period=period,
        before_period=ends(billing.before_period),
        billed=billing.billed,
    )
