"""The group `quota-proxy quotas`. Exit codes: 0 done, 1 failed, rejected or different, 2 wrong usage or file.

A command is imported when it is used: the others would make it wait for libraries that it does not need.
"""

import sys
from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from proxy.cli.libraries import import_kio
from proxy.errors import QuotaProxyError, SettingsError, suggestion


class LateCommand(NamedTuple):
    """A command that is imported when it runs. The group's help prints `help`, and imports none."""

    file: str
    name: str
    help: str


COMMANDS: Final = {
    "list": LateCommand(
        "entity_commands", "list_", "Show all quotas, or those of entities with the given parts."
    ),
    "get": LateCommand("entity_commands", "get", "Show the quotas of exactly one entity."),
    "set": LateCommand(
        "entity_commands", "set_", "Set quotas of one entity; its other quotas do not change."
    ),
    "delete": LateCommand(
        "entity_commands", "delete", "Remove quotas of one entity: those of the given keys, or all."
    ),
    "export": LateCommand("file_commands", "export", "Write all quotas as YAML."),
    "import": LateCommand("file_commands", "import_", "Set the quotas of a file."),
    "diff": LateCommand("file_commands", "diff", "Show what `import` would change."),
    "log": LateCommand(
        "log_command", "log", "Show who changed which quota, when, and from where; oldest first."
    ),
}


class QuotaCommands(click.Group):
    """Imports its commands late, and shows their errors without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS.get(cmd_name)
        if place is None:
            if not ctx.resilient_parsing and cmd_name[:1] != "-":
                ctx.fail(f"no such command: {cmd_name}; {suggestion(cmd_name, COMMANDS)}")
            return None
        import_kio()
        command: click.Command = getattr(import_module(f"proxy.cli.quotas.{place.file}"), place.name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, click.Command(name, help=COMMANDS[name].help).get_short_help_str(limit))
                    for name in names
                ]
            )

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except QuotaProxyError as error:
            click.echo(f"quota-proxy: {error}", err=True)
            sys.exit(2 if isinstance(error, SettingsError) else 1)


@click.group(
    cls=QuotaCommands,
    epilog="Example: quota-proxy quotas set --bootstrap localhost:29092 --user alice "
    "producer_byte_rate=1048576",
)
def quotas() -> None:
    """Show and change quotas over Kafka's admin protocol.

    Works with a quota proxy, and with a plain Kafka broker for the quotas of clients.
    """
