"""The command log: who changed which quota, when, and from where."""

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from proxy.cli.quotas.entity import Entity, show_entity, show_name
from proxy.cli.quotas.options import bootstrap_option, entity_options
from proxy.cli.quotas.output import NOTHING, columns
from proxy.cli.quotas.values import show_number, show_time
from proxy.cli.terminal import write_file
from proxy.quota.limits import resources
from proxy.upstream.cluster_access import ClusterAccess

if TYPE_CHECKING:
    from proxy.cli.quotas.cluster.audit_log import AuditEntry

TOPIC: Final = "__quota_proxy_config"
OF: Final = {resource: f"of-{resource}" for resource in (resources.TOPIC, resources.BROKER)}
"""The options for topics and brokers: --topic names the topic with the log."""
HEAD: Final = ("TIME", "BY", "CLIENT-ID", "FROM", "ENTITY", "QUOTA", "VALUE")


@click.command()
@bootstrap_option
@entity_options(required=False, names=OF)
@click.option(
    "--topic",
    default=TOPIC,
    show_default=True,
    help="The topic in which the proxies store quotas (quotas.store.topic).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
    help="Output format; json prints one object per line.",
)
def log(cluster: ClusterAccess, entity: Entity, topic: str, form: str) -> None:
    """Show who changed which quota, when, and from where; oldest first.

    The options for entities select changes: --user alice selects those of alice's quotas, and --of-topic
    orders those of the topic's quotas.

    The command reads the topic in which quota proxies store changes. The topic is compacted, so it may have
    only the last of several changes to one quota.
    """
    from proxy.cli.quotas.cluster.audit_log import read_log

    entries, unreadable = asyncio.run(read_log(cluster, topic))
    shown = [entry for entry in entries if set(entity) <= set(entry.entity or ())]
    if form == "json":
        for entry in shown:
            write_file(json.dumps(to_json(entry), ensure_ascii=False) + "\n")
    else:
        for line in columns(HEAD, map(to_row, shown)):
            click.echo(line)
    if unreadable:
        click.echo(f"quota-proxy: omitted {unreadable} unreadable records of {topic}", err=True)


def to_row(entry: "AuditEntry") -> tuple[str, ...]:
    """The cells of the entry, in the order of HEAD."""
    people = [show_name(name) if name else NOTHING for name in (entry.by, entry.client_id, entry.address)]
    entity = entry.kind if entry.entity is None else show_entity(entry.entity)
    return (show_time(entry.at_ms), *people, entity, entry.name, _show_value(entry))


def _show_value(entry: "AuditEntry") -> str:
    value = entry.value
    if entry.temporary and entry.expires_at_ms is None:
        return "temporary value ended"
    shown = json.dumps(value, ensure_ascii=False)
    if value is None:
        shown = "removed, overriding the file" if entry.overrides_file else "removed"
    if isinstance(value, str):
        shown = show_name(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        shown = show_number(float(value))
    return shown if entry.expires_at_ms is None else f"{shown} until {show_time(entry.expires_at_ms)}"


def to_json(entry: "AuditEntry") -> dict[str, object]:
    """The fields of the entry; the entity is a mapping, with null for Kafka's default entity."""
    return {**asdict(entry), "entity": None if entry.entity is None else dict(entry.entity)}
