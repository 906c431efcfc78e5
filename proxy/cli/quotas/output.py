"""Quotas as text in the format that the user chose."""

from typing import Final

import click

from proxy.cli.quotas.entity import Quotas, show_entity
from proxy.cli.quotas.quota_file import has_shape, to_json, to_yaml
from proxy.cli.quotas.table import quota_table

TABLE: Final = "table"
YAML: Final = "yaml"
JSON: Final = "json"
format_option = click.option(
    "--format", "form", type=click.Choice((TABLE, YAML, JSON)), default=TABLE, show_default=True
)


def render(quotas: Quotas, form: str) -> tuple[str, bool]:
    """The text, and whether all of them are in it; what a file cannot have is named on standard error."""
    if form == TABLE and not quotas:
        click.echo("no quotas", err=True)
        return "", True
    if form == TABLE:
        return "".join(f"{line}\n" for line in quota_table(quotas)), True
    fit = {entity: values for entity, values in quotas.items() if has_shape(entity)}
    for entity in quotas.keys() - fit.keys():
        reason = "a file would take that name for Kafka's default entity"
        click.echo(f"quota-proxy: {show_entity(entity)}: left out: {reason}", err=True)
    return (to_yaml if form == YAML else to_json)(fit), len(fit) == len(quotas)
