"""The commands list, get, set and delete: quotas of single entities."""

import asyncio
import sys
from collections.abc import Mapping, Sequence

import click

from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.client import QuotaClient
from proxy.cli.quotas.entity import Entity, Quotas, show_entity
from proxy.cli.quotas.options import bootstrap_option, dry_run_option, entity_options, expiry_options
from proxy.cli.quotas.output import format_option, render
from proxy.cli.quotas.sending import send
from proxy.cli.quotas.values import EXPIRES_AT_MS, parse_number, show_time
from proxy.errors import QuotaProxyError
from proxy.upstream.cluster_access import ClusterAccess


class NoQuota(QuotaProxyError):
    """The entity does not have the quota."""


@click.command("list")
@bootstrap_option
@entity_options(required=False)
@format_option
def list_(cluster: ClusterAccess, entity: Entity, form: str) -> None:
    """Show all quotas, or those of entities with the given parts.

    --user alice shows the quotas of alice, and of alice with any client id.
    """
    _print(asyncio.run(_describe(cluster, entity, exact=False)), form)


@click.command()
@bootstrap_option
@entity_options(required=True)
@format_option
def get(cluster: ClusterAccess, entity: Entity, form: str) -> None:
    """Show the quotas of exactly one entity.

    The exit code is 1 if it has none.
    """
    quotas = asyncio.run(_describe(cluster, entity, exact=True))
    if not quotas:
        raise NoQuota(f"{show_entity(entity)} has no quota")
    _print(quotas, form)


@click.command("set")
@bootstrap_option
@entity_options(required=True)
@click.argument("settings", metavar="KEY=VALUE...", nargs=-1, required=True)
@expiry_options
@dry_run_option
def set_(
    cluster: ClusterAccess, entity: Entity, settings: Sequence[str], until: int | None, dry_run: bool
) -> None:
    """Set quotas of one entity; its other quotas do not change.

    KEY is a key of AlterClientQuotas: producer_byte_rate, consumer_byte_rate, request_percentage,
    controller_mutation_rate, and connection_creation_rate for an ip.
    """
    values = dict(_setting(text) for text in settings)
    if len(values) < len(settings):
        raise click.UsageError("a key occurs twice; give each key one value")
    if asyncio.run(_set(cluster, EntityAlteration(entity, _with_expiry(values, until)), dry_run)):
        sys.exit(1)
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
    """Remove quotas of one entity: those of the given keys, or all."""
    if temporary and (keys or until is not None):
        raise click.UsageError(
            "--temporary ends all temporary quotas of the entity; omit the keys, --expires and --for"
        )
    if temporary:
        rejected = asyncio.run(_set(cluster, EntityAlteration(entity, {EXPIRES_AT_MS: None}), dry_run))
        removed = [] if rejected else ["temporary quotas"]
    else:
        removed = asyncio.run(_delete(cluster, entity, keys, until, dry_run))
    if not removed:
        sys.exit(1)
    done = "would be removed" if dry_run else "removed"
    click.echo(f"{show_entity(entity)}: {', '.join(removed)} {done}{_show_until(until)}")


async def _describe(cluster: ClusterAccess, entity: Entity, *, exact: bool) -> Quotas:
    async with QuotaClient(cluster) as client:
        return await client.describe(entity, exact=exact)


async def _set(cluster: ClusterAccess, alteration: EntityAlteration, dry_run: bool) -> int:
    async with QuotaClient(cluster) as client:
        return await send(client, [alteration], validate_only=dry_run)


async def _delete(
    cluster: ClusterAccess, entity: Entity, keys: Sequence[str], until: int | None, dry_run: bool
) -> list[str]:
    """The removed keys; none if the server rejected the request."""
    async with QuotaClient(cluster) as client:
        has = (await client.describe(entity, exact=True)).get(entity, {})
        removed = sorted(set(keys) or has)
        absent = [key for key in removed if key not in has]
        if absent or not removed:
            owned = f"it has {', '.join(sorted(has))}" if has else "it has no quota"
            raise NoQuota(f"{show_entity(entity)} has no {', '.join(absent) or 'quota'} to remove; {owned}")
        alteration = EntityAlteration(entity, _with_expiry(dict.fromkeys(removed), until))
        rejected = await send(client, [alteration], validate_only=dry_run)
    return [] if rejected else removed


def _print(quotas: Quotas, form: str) -> None:
    text, whole = render(quotas, form)
    click.echo(text, nl=False)
    if not whole:
        sys.exit(1)


def _with_expiry(values: Mapping[str, float | None], until: int | None) -> dict[str, float | None]:
    return {**values} if until is None else {**values, EXPIRES_AT_MS: float(until)}


def _show_until(until: int | None) -> str:
    return "" if until is None else f" until {show_time(until)}"


def _setting(text: str) -> tuple[str, float]:
    key, separator, value = text.partition("=")
    try:
        if not key or not separator:
            raise ValueError("expected KEY=VALUE")
        return key, parse_number(value)
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from error
