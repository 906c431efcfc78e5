"""The group `quota-proxy quotas`. Exit codes: 0 done, 1 failed, rejected or different, 2 wrong usage or file.

Its commands are imported when one of them is used: importing kio and aiokafka takes half a second, which
would delay every other command of `quota-proxy`.
"""

import sys
from typing import Any

import click

from proxy.errors import QuotaProxyError, SettingsError


class QuotaCommands(click.Group):
    """Imports its commands late, and shows their errors without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _commands().get(cmd_name)

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


def _commands() -> dict[str, click.Command]:
    from proxy.cli.quotas.entity_commands import delete, get, list_, set_
    from proxy.cli.quotas.file_commands import diff, export, import_
    from proxy.cli.quotas.log_command import log

    commands = (list_, get, set_, delete, export, import_, diff, log)
    return {str(command.name): command for command in commands}
