"""Sending alterations with a progress bar, and reporting those that the server rejected."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.client import QuotaClient
from proxy.cli.quotas.config_client import ConfigClient
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

    The progress bar is shown for more than one entity, if standard error is a terminal.
    """
    rejected = 0
    of_clients = [entry for entry in entries if section(entry.entity) == CLIENTS]
    of_resources = [entry for entry in entries if section(entry.entity) != CLIENTS]
    with _progress("checking" if validate_only else "sending", len(entries)) as progress:
        task = progress.add_task("", total=len(entries))
        done_before = 0
        for sender, mine in ((client, of_clients), (configs, of_resources)):
            async for done, rejections in sender.alter(mine, validate_only=validate_only):
                progress.update(task, completed=done_before + done)
                for rejection in rejections:
                    click.echo(
                        f"quota-proxy: {show_entity(rejection.entity)}: not altered: {rejection.reason}",
                        file=sys.stderr,
                    )
                rejected += len(rejections)
            done_before += len(mine)
    return rejected


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
