"""Columns of text: aligned for eyes, cut at spaces for tools, one row a line."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.cells import cell_len

from proxy.cli.quotas.entity import Quotas, show_name, sort_key, type_order
from proxy.cli.quotas.number import show_number

NOTHING: Final = "-"


def quota_table(quotas: Quotas) -> list[str]:
    """A row for each entity, a column for each entity type and each quota that occurs."""
    used = sorted({part[0] for entity in quotas for part in entity}, key=type_order)
    keys = sorted({key for values in quotas.values() for key in values})
    rows = []
    for entity in sorted(quotas, key=sort_key):
        names, values = dict(entity), quotas[entity]
        row = [show_name(names[kind]) if kind in names else NOTHING for kind in used]
        rows.append(row + [show_number(values[key]) if key in values else NOTHING for key in keys])
    return columns((*used, *keys), rows)


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with each column as wide as its widest cell; only the head where there are no rows."""
    table = [head, *rows]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in table
    ]
