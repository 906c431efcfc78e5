"""Quotas as text in the format that the user chose: a table, YAML or JSON."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import click

from proxy.cli.quotas.entity import CLIENTS, Quotas, show_entity, show_name, sort_key, type_order
from proxy.cli.quotas.values import show_value

TABLE: Final = "table"
YAML: Final = "yaml"
JSON: Final = "json"
NOTHING: Final = "-"
"""Shown in a cell without a value, so that tools find every column at its place."""
format_option = click.option(
    "--format",
    "form",
    type=click.Choice((TABLE, YAML, JSON)),
    default=TABLE,
    show_default=True,
    help="Output format.",
)


def render(quotas: Quotas, form: str, sections: Collection[str] = (CLIENTS,)) -> tuple[str, int]:
    """YAML or JSON, and how many entities it has. Those that a file cannot represent are reported on standard
    error. `sections` are written even if they are empty.
    """
    # A table needs neither this file nor YAML.
    from proxy.cli.quotas.quota_file import has_shape, to_json, to_yaml

    fit = {entity: values for entity, values in quotas.items() if has_shape(entity)}
    for entity in quotas.keys() - fit.keys():
        reason = "in a file this name means Kafka's default entity; kafka-configs.sh can change its quotas"
        click.echo(f"quota-proxy: {show_entity(entity)}: omitted: {reason}", err=True)
    return (to_yaml if form == YAML else to_json)(fit, sections), len(fit)


def quota_table(quotas: Quotas) -> list[str]:
    """Client quotas: a row for each entity, and a column for each entity type and each quota that occurs."""
    used = sorted({part[0] for entity in quotas for part in entity}, key=type_order)
    keys = sorted({key for values in quotas.values() for key in values})
    rows = []
    for entity in sorted(quotas, key=sort_key):
        names, values = dict(entity), quotas[entity]
        row = [show_name(names[kind]) if kind in names else NOTHING for kind in used]
        rows.append(row + [show_value(values[key]) if key in values else NOTHING for key in keys])
    return columns((*used, *keys), rows)


def config_table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Configs of topics and brokers: entity, config, value, and where the value comes from."""
    return columns(("entity", "config", "value", "from"), rows)


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A line for the head and for each row, with columns as wide as their widest cell."""
    table = [head, *rows]
    widths = [max(map(text_width, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell + " " * (width - text_width(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in table
    ]


def text_width(text: str) -> int:
    """The columns of a terminal that the text takes."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
