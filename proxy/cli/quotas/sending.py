"""Sending alterations with a progress bar, and reporting those that the server rejected."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import click

from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.client import QuotaClient
from proxy.cli.quotas.cluster.config_client import ConfigClient
from proxy.cli.quotas.cluster.retries import RejectedAlteration
from proxy.cli.quotas.entity import CLIENTS, section, show_entity

if TYPE_CHECKING:
    from rich.progress import Progress


async def send(
    client: QuotaClient,
    configs: ConfigClient,
    entries: Sequence[EntityAlteration],
    *,
    validate_only: bool = False,
) -> int:
    """Send the alterations, and return the number of rejected entities. Each is reported on standard error
    with the server's reason.

    The progress bar is shown for more than one entity, if standard error is a terminal. If Ctrl-C cancels the
    task, a message says which entities have been sent.
    """
    settled = rejected = 0
    try:
        with _progress("checking" if validate_only else "sending", len(entries)) as progress:
            task = progress.add_task("", total=len(entries))
            async for settled, rejections in _alter(client, configs, entries, validate_only):
                progress.update(task, completed=settled)
                for rejection in rejections:
                    click.echo(
                        f"quota-proxy: {show_entity(rejection.entity)}: not altered: {rejection.reason}",
                        file=sys.stderr,
                    )
                rejected += len(rejections)
    except asyncio.CancelledError:
        if not validate_only and settled < len(entries):
            known = f"the server has responded for {settled} of {len(entries)} entities"
            advice = "it may have altered others, too; run the same command again"
            click.echo(f"quota-proxy: interrupted: {known}; {advice}", file=sys.stderr)
        raise
    return rejected


async def _alter(
    client: QuotaClient, configs: ConfigClient, entries: Sequence[EntityAlteration], validate_only: bool
) -> AsyncIterator[tuple[int, list[RejectedAlteration]]]:
    """Alter clients, then topics and brokers. Yields as QuotaClient.alter() does."""
    of_clients = [entry for entry in entries if section(entry.entity) == CLIENTS]
    of_resources = [entry for entry in entries if section(entry.entity) != CLIENTS]
    async for settled, rejections in client.alter(of_clients, validate_only=validate_only):
        yield settled, rejections
    async for settled, rejections in configs.alter(of_resources, validate_only=validate_only):
        yield len(of_clients) + settled, rejections


def _progress(what: str, entities: int) -> "Progress":
    """Return the progress bar, which is invisible for one entity, and without a terminal."""
    # Commands that only read share this file's imports, and rich takes a tenth of their time.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("entities"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=entities < 2 or not console.is_terminal,
    )
