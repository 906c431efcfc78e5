"""The commands list, get, set and delete: quotas of single entities."""

import asyncio
import sys
from collections.abc import Mapping, Sequence

import click

from proxy.admin.messages.client_quotas import EXPIRES_AT_MS
from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.client import QuotaClient
from proxy.cli.quotas.cluster.config_client import ConfigClient
from proxy.cli.quotas.cluster.server_quotas import (
    NO_CONFIGS,
    config_layers,
    effective_configs,
    effective_rows,
    file_configs,
    show_source,
)
from proxy.cli.quotas.entity import (
    CLIENTS,
    Entity,
    Quotas,
    Value,
    section,
    show_entity,
    sort_key,
)
from proxy.cli.quotas.options import bootstrap_option, dry_run_option, entity_options, expiry_options
from proxy.cli.quotas.output import TABLE, config_table, format_option, quota_table, render
from proxy.cli.quotas.sending import send
from proxy.cli.quotas.values import parse_number, show_time, show_value
from proxy.cli.terminal import write_file
from proxy.config.yaml.units import number_hint
from proxy.errors import QuotaProxyError, suggestion
from proxy.store.layer_report import ConfigReport
from proxy.upstream.cluster_access import ClusterAccess


class NoQuota(QuotaProxyError):
    """The entity does not have the quota."""


@click.command("list")
@bootstrap_option
@entity_options(required=False)
@format_option
def list_(cluster: ClusterAccess, entity: Entity, form: str) -> None:
    """Show all quotas, or those of entities with the given parts.

    --user alice shows the quotas of alice, and of alice with any client id. Topics and brokers are shown with
    their own quotas; `get --topic NAME` also shows those of <default>.
    """
    clients, report, _ = asyncio.run(_describe(cluster, entity, exact=False))
    configs = {} if report is None else effective_configs(report)
    configs = {of: values for of, values in configs.items() if set(entity) <= set(of)}
    if form != TABLE:
        sections = (section(entity),) if entity else (CLIENTS,)
        _print_file({**clients, **configs}, form, sections)
        return
    lines = quota_table(clients) if clients else []
    if configs and report is not None:
        lines += [""] * bool(lines) + config_table(_rows(report, configs))
    if not lines:
        click.echo("no quotas", err=True)
    click.echo("".join(f"{line}\n" for line in lines), nl=False)


@click.command()
@bootstrap_option
@entity_options(required=True)
@format_option
def get(cluster: ClusterAccess, entity: Entity, form: str) -> None:
    """Show the quotas of exactly one entity.

    For a topic or a broker, the table also has the quotas of <default> that apply to it, and shows where each
    value comes from: the proxy's configuration file, or tools. YAML and JSON have only its own quotas.

    The exit code is 1 if the entity has no quota.
    """
    clients, report, missing = asyncio.run(_describe(cluster, entity, exact=True))
    quotas = clients if report is None else of_entity(effective_configs(report), entity)
    rows = [] if report is None else effective_rows(report, entity)
    if not quotas and not rows:
        raise NoQuota(missing or f"{show_entity(entity)} has no quota")
    if missing:
        click.echo(f"quota-proxy: {missing}", err=True)
    if form != TABLE:
        _print_file(quotas, form, (section(entity),))
        return
    lines = config_table([(show_entity(entity), *row) for row in rows]) if rows else quota_table(quotas)
    click.echo("".join(f"{line}\n" for line in lines), nl=False)


@click.command("set")
@bootstrap_option
@entity_options(required=True)
@click.argument("settings", metavar="KEY=VALUE...", nargs=-1)
@click.option(
    "--back-to-file",
    is_flag=True,
    help="Return the given KEYs, or all, to the values of the proxy's configuration file.",
)
@expiry_options
@dry_run_option
def set_(
    cluster: ClusterAccess,
    entity: Entity,
    settings: Sequence[str],
    back_to_file: bool,
    until: int | None,
    dry_run: bool,
) -> None:
    """Set quotas of one entity; its other quotas do not change.

    KEY is a key of AlterClientQuotas: producer_byte_rate, consumer_byte_rate, request_percentage,
    controller_mutation_rate, and connection_creation_rate for an ip. For a topic or a broker, KEY is a config
    such as producer.byte.rate or total.bytes.in.per.sec.threshold. VALUE is a number without a unit: bytes
    per second, percent of one thread (request_percentage), connections or partitions per second.
    """
    if back_to_file:
        _check_back_to_file(settings, until)
        click.echo(asyncio.run(_back_to_file(cluster, entity, settings, dry_run)))
        return
    if not settings:
        raise click.UsageError("Missing argument 'KEY=VALUE...'.")
    numbers = section(entity) == CLIENTS
    values = dict(_setting(text, numbers) for text in settings)
    if len(values) < len(settings):
        raise click.UsageError("a key occurs twice; give each key one value")
    asyncio.run(_set(cluster, EntityAlteration(entity, _with_expiry(values, until)), dry_run))
    done = "would be set" if dry_run else "set"
    click.echo(f"{show_entity(entity)}: {', '.join(settings)} {done}{_show_until(until)}")


@click.command()
@bootstrap_option
@entity_options(required=True)
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@click.option("--temporary", is_flag=True, help="End the temporary quotas; lasting ones do not change.")
@expiry_options
@dry_run_option
def delete(
    cluster: ClusterAccess,
    entity: Entity,
    keys: Sequence[str],
    temporary: bool,
    until: int | None,
    dry_run: bool,
) -> None:
    """Remove quotas of one entity: those of the given keys, or all.

    Removing a quota that the proxy's configuration file has overrides the file until `set --back-to-file`.
    """
    if temporary and (keys or until is not None):
        raise click.UsageError(
            "--temporary ends all temporary quotas of the entity; omit the keys, --expires and --for"
        )
    if temporary:
        asyncio.run(_set(cluster, EntityAlteration(entity, {EXPIRES_AT_MS: None}), dry_run))
        removed = ["temporary quotas"]
    else:
        removed = asyncio.run(_delete(cluster, entity, keys, until, dry_run))
    done = "would be removed" if dry_run else "removed"
    click.echo(f"{show_entity(entity)}: {', '.join(removed)} {done}{_show_until(until)}")


async def _describe(
    cluster: ClusterAccess, entity: Entity, *, exact: bool
) -> tuple[Quotas, ConfigReport | None, str]:
    """The quotas of clients, and the report of topics and brokers; without what the entity excludes. If
    `exact`, also a sentence if the cluster does not have the topic or the broker.
    """
    async with QuotaClient(cluster) as client:
        of_clients = section(entity) == CLIENTS
        quotas = await client.describe(entity, exact=exact) if of_clients else {}
        if entity and of_clients:
            return quotas, None, ""
        configs = ConfigClient(client, cluster)
        report = await configs.report()
        if entity and report is None:
            raise _no_proxy()
        return quotas, report, await configs.missing(entity) if exact else ""


async def _set(cluster: ClusterAccess, alteration: EntityAlteration, dry_run: bool) -> None:
    """Send the alteration. Ends the command with exit code 1 if the server rejects it."""
    async with QuotaClient(cluster) as client:
        configs = ConfigClient(client, cluster)
        if section(alteration.entity) != CLIENTS:
            _check_names(await configs.report(), alteration)
        if await send(client, configs, [alteration], validate_only=dry_run):
            sys.exit(1)


async def _delete(
    cluster: ClusterAccess, entity: Entity, keys: Sequence[str], until: int | None, dry_run: bool
) -> list[str]:
    """The removed keys. Ends the command with exit code 1 if the server rejects the request."""
    async with QuotaClient(cluster) as client:
        configs = ConfigClient(client, cluster)
        effective, of_file = await _read(client, configs, entity)
        has = effective.get(entity, {})
        removed = sorted(set(keys) or has)
        absent = [key for key in removed if key not in has]
        if absent or not removed:
            owned = f"; it has {', '.join(sorted(has))}" if has else "; it has no quota" if absent else ""
            raise NoQuota(f"{show_entity(entity)} has no {', '.join(absent) or 'quota'} to remove{owned}")
        alteration = EntityAlteration(entity, _with_expiry(dict.fromkeys(removed), until))
        if await send(client, configs, [alteration], validate_only=dry_run):
            sys.exit(1)
    hidden = [key for key in removed if key in of_file.get(entity, {})]
    if hidden and until is None:
        advice = "`quotas set --back-to-file` returns to its values"
        click.echo(f"the proxy's configuration file has {', '.join(hidden)}; {advice}", err=True)
    return removed


async def _back_to_file(cluster: ClusterAccess, entity: Entity, keys: Sequence[str], dry_run: bool) -> str:
    """Return the keys, or all, to the file; the line to print."""
    async with QuotaClient(cluster) as client:
        configs = ConfigClient(client, cluster)
        alteration = EntityAlteration(entity, dict.fromkeys(keys), back_to_file=True)
        if section(entity) != CLIENTS:
            _check_names(await configs.report(), alteration)
        if await send(client, configs, [alteration], validate_only=dry_run):
            sys.exit(1)
        effective, of_file = await _read(client, configs, entity)
    values = (of_file if dry_run else effective).get(entity, {})
    shown = [f"{key}={show_value(value)}" for key, value in sorted(values.items()) if key in keys or not keys]
    would = "would return" if dry_run else "returned"
    return f"{show_entity(entity)}: {would} to the file: {', '.join(shown) or 'no quota'}"


async def _read(client: QuotaClient, configs: ConfigClient, entity: Entity) -> tuple[Quotas, Quotas]:
    """The quotas in force, and those of the proxy's file."""
    if section(entity) == CLIENTS:
        return await client.describe(entity, exact=True), await client.describe_file() or {}
    report = await configs.report()
    if report is None:
        raise _no_proxy()
    return effective_configs(report), file_configs(report)


def of_entity(quotas: Quotas, entity: Entity) -> Quotas:
    """The quotas of this entity alone."""
    return {entity: quotas[entity]} if entity in quotas else {}


def _no_proxy() -> NoQuota:
    return NoQuota(NO_CONFIGS)


def _check_names(report: ConfigReport | None, alteration: EntityAlteration) -> None:
    """Raise NoQuota for a config that is not a quota of the proxy: it would be set at the broker."""
    if report is None:
        raise _no_proxy()
    kind = alteration.entity[0][0]
    known = report.names.get(kind, [])
    for name in alteration.values:
        if name != EXPIRES_AT_MS and name not in known:
            raise NoQuota(
                f"{name} is not a quota of a {kind} that the proxy enforces; {suggestion(name, known)}"
            )


def _rows(report: ConfigReport, quotas: Quotas) -> list[tuple[str, str, str, str]]:
    found = [
        (of, name, values[0]) for of, name, values in config_layers(report) if name in quotas.get(of, {})
    ]
    found.sort(key=lambda row: (sort_key(row[0]), row[1]))
    return [(show_entity(of), name, str(value.value), show_source(value)) for of, name, value in found]


def _print_file(quotas: Quotas, form: str, sections: Sequence[str]) -> None:
    text, written = render(quotas, form, sections)
    write_file(text)
    if written < len(quotas):
        sys.exit(1)


def _with_expiry(values: Mapping[str, Value | None], until: int | None) -> dict[str, Value | None]:
    return {**values} if until is None else {**values, EXPIRES_AT_MS: float(until)}


def _show_until(until: int | None) -> str:
    return "" if until is None else f" until {show_time(until)}"


def _check_back_to_file(keys: Sequence[str], until: int | None) -> None:
    if until is not None:
        raise click.UsageError("--back-to-file excludes --expires and --for")
    for key in keys:
        if "=" in key:
            raise click.UsageError(f"{key}: expected KEY alone, since --back-to-file takes the file's value")


def _setting(text: str, is_number: bool) -> tuple[str, Value]:
    key, separator, value = text.partition("=")
    try:
        if not key or not separator:
            raise ValueError("expected KEY=VALUE")
        if is_number:
            return key, parse_number(value)
        hint = number_hint(value)
        if hint and not value.isdigit():
            raise ValueError(f"expected a number{hint}")
        return key, value
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from error
