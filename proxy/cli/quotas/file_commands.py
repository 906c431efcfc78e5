"""The commands export, import and diff: quotas as a file, for version control."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from proxy.cli.quotas.changes import EntityAlteration, QuotaChange, alterations, compare, kept, summary
from proxy.cli.quotas.cluster.client import QuotaClient
from proxy.cli.quotas.cluster.config_client import ConfigClient
from proxy.cli.quotas.cluster.server_quotas import NO_CONFIGS, ServerQuotas, read_server
from proxy.cli.quotas.entity import BROKERS, CLIENTS, TOPICS, Quotas, of_section, section
from proxy.cli.quotas.options import bootstrap_option, dry_run_option
from proxy.cli.quotas.output import YAML, render
from proxy.cli.quotas.sending import send
from proxy.cli.quotas.whole_file import write_whole
from proxy.cli.terminal import write_file
from proxy.errors import QuotaProxyError, SettingsError
from proxy.quota.identity import DEFAULT_IN_YAML
from proxy.upstream.cluster_access import ClusterAccess

if TYPE_CHECKING:
    from proxy.cli.quotas.quota_file import QuotaFile

STDIN: Final = Path("/dev/stdin")


def _standard_input(_context: click.Context, _parameter: click.Parameter, file: Path) -> Path:
    return STDIN if str(file) == "-" else file


file_argument = click.argument(
    "file", type=click.Path(path_type=Path, readable=False), callback=_standard_input
)


@click.command()
@bootstrap_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, readable=False),
    help="Write to this file instead of standard output.",
)
def export(cluster: ClusterAccess, out: Path | None) -> None:
    """Write all quotas as YAML.

    `import` and the proxy's configuration accept the file. It has the lasting quotas, without temporary
    values. From a plain broker, it has the quotas of clients only.
    """
    server = asyncio.run(_describe(cluster))
    text, written = render(server.lasting, YAML, server.sections)
    if out is None:
        write_file(text)
    else:
        _write(out, text)
        click.echo(f"{out}: {written} entities", err=True)
    if written < len(server.lasting):
        sys.exit(1)


@click.command("import")
@bootstrap_option
@file_argument
@click.option("--prune", is_flag=True, help="Remove quotas that are not in the file.")
@dry_run_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation before --prune removes quotas.")
def import_(cluster: ClusterAccess, file: Path, prune: bool, dry_run: bool, yes: bool) -> None:
    """Set the quotas of a file.

    FILE is the output of `export`, or a proxy's configuration, from which only quotas.clients, quotas.topics
    and quotas.brokers are read. Entries with `expires` are ignored. Without --prune, quotas that are not in
    the file do not change. `-` is standard input.

    --prune removes quotas only under those of the three keys that FILE has. It never removes a quota of the
    proxy's own configuration file. If tools have changed such a quota, it returns to the value in that file.

    `diff` shows what `import` would change.
    """
    sys.exit(_import(cluster, file, _read(file), prune, dry_run, yes))


@click.command()
@bootstrap_option
@file_argument
@click.option(
    "--prune/--no-prune",
    default=True,
    show_default=True,
    help="Whether to show the quotas that `import --prune` would remove.",
)
def diff(cluster: ClusterAccess, file: Path, prune: bool) -> None:
    """Show what `import` would change.

    A line begins with + if the quota is added, with ~ if it changes, and with - if --prune removes it.

    The exit code is 0 if nothing differs, otherwise 1.
    """
    want = _read(file)
    server = asyncio.run(_describe(cluster))
    changes = _compare(file, server, want, prune)
    for change in changes:
        click.echo(str(change))
    if changes:
        click.echo(summary(changes), err=True)
        sys.exit(1)


async def _describe(cluster: ClusterAccess) -> ServerQuotas:
    async with QuotaClient(cluster) as client:
        return await read_server(client, ConfigClient(client, cluster))


def _compare(file: Path, server: ServerQuotas, want: "QuotaFile", prune: bool) -> list[QuotaChange]:
    """The changes that an import makes. Raises SettingsError if the server cannot have quotas of the file."""
    _check_server(file, server, want)
    sections = want.sections & set(server.sections) if prune else frozenset()
    of_file = server.of_file or {}
    have = _nameable(server.lasting)
    if sections and len(have) < len(server.lasting):
        what = f"{len(server.lasting) - len(have)} entities whose real name is {DEFAULT_IN_YAML}"
        click.echo(f"{what} keep their quotas: a file cannot name them", err=True)
    changes = compare(have, want.lasting, prune=sections, ignored=want.temporary, of_file=server.of_file)
    left = kept(have, want.lasting, of_file, sections)
    if left:
        what = f"{len(left)} quotas of the proxy's configuration file are not in {file}"
        click.echo(f"{what}; to remove them, change the configuration file", err=True)
    return changes


def _nameable(quotas: Quotas) -> Quotas:
    """The quotas of the entities that a file can name. `export` omits the others, so an import of its output
    must not remove them.
    """
    from proxy.cli.quotas.quota_file import has_shape

    return {entity: values for entity, values in quotas.items() if has_shape(entity)}


def _check_server(file: Path, server: ServerQuotas, want: "QuotaFile") -> None:
    resources = of_section(want.lasting, TOPICS, BROKERS)
    if not resources:
        return
    if server.sections == (CLIENTS,):
        problem = f"{NO_CONFIGS}; remove topics and brokers from the file"
        raise SettingsError(problem, ("quotas",), file=file)
    for entity, values in resources.items():
        for name in values:
            if name not in server.names:
                key = ("quotas", section(entity), entity[0][1] or DEFAULT_IN_YAML, name)
                advice = "add a replication listener to the proxy, or set it on the brokers"
                raise SettingsError(f"the proxy leaves this config to the brokers; {advice}", key, file=file)


def _import(
    cluster: ClusterAccess, file: Path, want: "QuotaFile", prune: bool, dry_run: bool, yes: bool
) -> int:
    """Import the quotas; return the exit code."""
    server = asyncio.run(_describe(cluster))
    changes = _compare(file, server, want, prune)
    if dry_run:
        for change in changes:
            click.echo(str(change))
    else:
        # Not in a task: there, Ctrl-C would not interrupt the question.
        _confirm(changes, ask=not yes)
    entries = alterations(changes, back_to_file=server.of_file is not None)
    rejected = asyncio.run(_send(cluster, entries, dry_run)) if entries else 0
    equal = len(want.lasting.keys() - {entry.entity for entry in entries})
    done = "would be altered" if dry_run else "altered"
    click.echo(f"{len(entries) - rejected} entities {done}, {equal} unchanged, {rejected} rejected", err=True)
    return 1 if rejected else 0


async def _send(cluster: ClusterAccess, entries: Sequence[EntityAlteration], dry_run: bool) -> int:
    async with QuotaClient(cluster) as client:
        return await send(client, ConfigClient(client, cluster), entries, validate_only=dry_run)


def _read(file: Path) -> "QuotaFile":
    """Read the file, and report on standard error what an import ignores. Raises SettingsError."""
    from rich.console import Console

    from proxy.cli.quotas.quota_file import read_quotas
    from proxy.store.yaml_file import EXPIRES, SCOPE

    # PyYAML needs some seconds for tens of thousands of entities: show on a terminal what takes so long.
    with Console(stderr=True).status(f"reading {file}"):
        read = read_quotas(file)
    if read.temporary:
        what = f"ignored {len(read.temporary)} quotas with {EXPIRES}"
        click.echo(f"{file}: {what}; use `quotas set --expires` to set temporary quotas", err=True)
    if read.scoped or read.has_default_scope:
        of_entities = [f"the {SCOPE} of {len(read.scoped)} entities"] if read.scoped else []
        what = "ignored " + " and ".join(["quotas.scope"] * read.has_default_scope + of_entities)
        where = f"set quotas.scope, or an entry's {SCOPE}, in the configuration of the proxies"
        click.echo(f"{file}: {what}; {where}", err=True)
    return read


def _confirm(changes: Sequence[QuotaChange], *, ask: bool) -> None:
    """List what is removed, and ask for confirmation."""
    removed = [change for change in changes if change.after is None]
    for change in removed:
        click.echo(str(change), err=True)
    if removed and ask:
        entities = len({change.entity for change in removed})
        try:
            confirmed = click.confirm(f"Remove {len(removed)} quotas of {entities} entities?", err=True)
        except click.Abort:  # no terminal, or Ctrl-C
            confirmed = False
            click.echo(err=True)
        if not confirmed:
            raise QuotaProxyError("nothing has changed; to remove quotas without this question, pass --yes")


def _write(out: Path, text: str) -> None:
    try:
        write_whole(out, text)
    except OSError as error:
        raise QuotaProxyError(f"cannot write {out}: {error.strerror}") from error
