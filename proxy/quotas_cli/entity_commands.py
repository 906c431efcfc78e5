"""list, get, set, delete: quotas of single entities, and the view of all."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from proxy.errors import QuotaProxyError
from proxy.quotas_cli.changes import Alteration
from proxy.quotas_cli.client import QuotaClient
from proxy.quotas_cli.entity import Entity, Quotas, show_entity
from proxy.quotas_cli.expiry import EXPIRES_AT_MS, parse_duration, parse_time, show_time
from proxy.quotas_cli.number import parse_number
from proxy.quotas_cli.options import bootstrap_option, dry_run_option, entity_options
from proxy.quotas_cli.output import format_option, render
from proxy.quotas_cli.sending import send

Bootstrap = Sequence[tuple[str, int]]


class NoQuota(QuotaProxyError):
    """The entity has no such quota of its own."""


@click.command("list")
@bootstrap_option
@entity_options(required=False)
@format_option
def list_(bootstrap: Bootstrap, entity: Entity, form: str) -> None:
    """Show the quotas, all or those of entities with the given parts.

    --user alice shows alice's own and those of alice with any client id.
    """
    _print(asyncio.run(_describe(bootstrap, entity, exact=False)), form)


@click.command()
@bootstrap_option
@entity_options(required=True)
@format_option
def get(bootstrap: Bootstrap, entity: Entity, form: str) -> None:
    """Show the quotas of exactly one entity; exit code 1 where it has none of its own."""
    quotas = asyncio.run(_describe(bootstrap, entity, exact=True))
    if not quotas:
        raise NoQuota(f"{show_entity(entity)} has no quota of its own")
    _print(quotas, form)


@click.command("set")
@bootstrap_option
@entity_options(required=True)
@click.argument("settings", metavar="KEY=VALUE...", nargs=-1, required=True)
@click.option(
    "--expires", metavar="TIME", help="Only until then, such as 2026-12-01T00:00Z (quota proxies only)."
)
@click.option(
    "--for", "duration", metavar="DURATION", help="Only for so long, such as 2h (quota proxies only)."
)
@dry_run_option
def set_(
    bootstrap: Bootstrap,
    entity: Entity,
    settings: Sequence[str],
    expires: str | None,
    duration: str | None,
    dry_run: bool,
) -> None:
    """Set quotas of one entity; its other quotas stay.

    KEY is one of AlterClientQuotas': producer_byte_rate, consumer_byte_rate, request_percentage,
    controller_mutation_rate, and connection_creation_rate for an ip.
    """
    values: dict[str, float | None] = dict(_setting(text) for text in settings)
    if len(values) < len(settings):
        raise click.UsageError("a key is given twice; give it one value")
    until = _expiry(expires, duration)
    shown = f"{show_entity(entity)}: {', '.join(settings)}"
    if until is not None:
        values[EXPIRES_AT_MS] = float(until)
        shown += f" until {show_time(until)}"
    if asyncio.run(_set(bootstrap, Alteration(entity, values), dry_run)):
        sys.exit(1)
    click.echo(f"{shown} would be taken" if dry_run else shown)


@click.command()
@bootstrap_option
@entity_options(required=True)
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@dry_run_option
def delete(bootstrap: Bootstrap, entity: Entity, keys: Sequence[str], dry_run: bool) -> None:
    """Remove the named quotas of one entity, or all that it has."""
    removed = asyncio.run(_delete(bootstrap, entity, keys, dry_run))
    if not removed:
        sys.exit(1)
    done = "would be removed" if dry_run else "removed"
    click.echo(f"{show_entity(entity)}: {', '.join(removed)} {done}")


async def _describe(bootstrap: Bootstrap, entity: Entity, *, exact: bool) -> Quotas:
    async with QuotaClient(bootstrap) as client:
        return await client.describe(entity, exact=exact)


async def _set(bootstrap: Bootstrap, alteration: Alteration, dry_run: bool) -> int:
    async with QuotaClient(bootstrap) as client:
        return await send(client, [alteration], validate_only=dry_run)


async def _delete(bootstrap: Bootstrap, entity: Entity, keys: Sequence[str], dry_run: bool) -> list[str]:
    """The keys that were removed; none where the server refused."""
    async with QuotaClient(bootstrap) as client:
        has = (await client.describe(entity, exact=True)).get(entity, {})
        removed = sorted(set(keys) or has)
        absent = [key for key in removed if key not in has]
        if absent or not removed:
            owned = f"it has {', '.join(sorted(has))}" if has else "it has no quota of its own"
            raise NoQuota(f"{show_entity(entity)} has no {', '.join(absent) or 'quota'} to remove; {owned}")
        refused = await send(client, [Alteration(entity, dict.fromkeys(removed))], validate_only=dry_run)
    return [] if refused else removed


def _print(quotas: Quotas, form: str) -> None:
    text, whole = render(quotas, form)
    click.echo(text, nl=False)
    if not whole:
        sys.exit(1)


def _setting(text: str) -> tuple[str, float]:
    key, separator, value = text.partition("=")
    try:
        if not key or not separator:
            raise ValueError("expected KEY=VALUE")
        return key, parse_number(value)
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from error


def _expiry(expires: str | None, duration: str | None) -> int | None:
    if expires is not None and duration is not None:
        raise click.UsageError("--expires and --for say the same; give one of them")
    now = datetime.now(UTC)
    try:
        if expires is not None:
            return parse_time(expires, now)
        return None if duration is None else parse_duration(duration, now)
    except ValueError as error:
        raise click.UsageError(f"{'--for' if expires is None else '--expires'}: {error}") from error
