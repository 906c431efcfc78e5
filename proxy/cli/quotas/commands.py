"""The group `quota-proxy quotas`. Exit codes: 0 done, 1 failed, rejected or different, 2 wrong usage or file.

A command is imported when it is used: the others would make it wait for libraries that it does not need.
"""

import sys
from importlib import import_module
from typing import Any, Final

import click

from proxy.cli.libraries import import_kio
from proxy.errors import QuotaProxyError, SettingsError

COMMANDS: Final = {
    "list": ("entity_commands", "list_"),
    "get": ("entity_commands", "get"),
    "set": ("entity_commands", "set_"),
    "delete": ("entity_commands", "delete"),
    "export": ("file_commands", "export"),
    "import": ("file_commands", "import_"),
    "diff": ("file_commands", "diff"),
    "log": ("log_command", "log"),
}
"""The file and the name of each command."""


class QuotaCommands(click.Group):
    """Imports its commands late, and shows their errors without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        import_kio()
        file, name = place
        command: click.Command = getattr(import_module(f"proxy.cli.quotas.{file}"), name)
        return command

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
    """Show and change client quotas over Kafka's admin protocol.

    Works with a quota proxy, and with a plain Kafka broker.
    """
