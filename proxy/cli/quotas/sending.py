"""Sending alterations with a progress bar, and reporting those that the server rejected."""

import sys
from collections.abc import Sequence

import click

from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.client import QuotaClient
from proxy.cli.quotas.entity import show_entity


async def send(
    client: QuotaClient, entries: Sequence[EntityAlteration], *, validate_only: bool = False
) -> int:
    """Send the alterations, and return the number of rejected entities. Each is reported on standard error
    with the server's reason.

    The progress bar is shown for more than one entity, if standard error is a terminal.
    """
    # Commands that only read share this file's imports, and rich takes a tenth of their time.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    rejected = 0
    with Progress(
        TextColumn("checking" if validate_only else "sending"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("entities"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=len(entries) < 2 or not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=len(entries))
        async for done, rejections in client.alter(entries, validate_only=validate_only):
            progress.update(task, completed=done)
            for rejection in rejections:
                click.echo(
                    f"quota-proxy: {show_entity(rejection.entity)}: not altered: {rejection.reason}",
                    file=sys.stderr,
                )
            rejected += len(rejections)
    return rejected
