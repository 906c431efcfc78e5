"""The `quota-proxy` command. Exit codes: 0 done, 1 failed while running, 2 the configuration is wrong.

A command imports what it needs when it runs: a proxy that restarts should serve soon, and no command should
wait for what another one needs.
"""

import errno
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import click

import proxy
from proxy.cli.libraries import import_kio
from proxy.cli.quotas.commands import quotas
from proxy.cli.terminal import NAME, escape_what_it_cannot_show
from proxy.errors import QuotaProxyError, SettingsError
from proxy.telemetry import log

if TYPE_CHECKING:
    from proxy.cli.admin_port import AdminPort

config_option = click.option(
    "--config",
    "path",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, readable=False),
    help="The configuration file (YAML).",
)


class Commands(click.Group):
    """Reports a full disk that output is written to, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
                raise
            click.echo(f"quota-proxy: cannot write the output: {error.strerror}", err=True)
            # At its end, Python writes what is left of the output.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(1)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="config/quota-proxy.yaml has every key of the configuration; docs/configuration.md explains them. "
    "Exit codes: 0 done, 1 failed or rejected, 2 wrong usage or a wrong file.",
)
@click.version_option(proxy.__version__, prog_name="quota-proxy")
def main() -> None:
    """Quota proxy for Apache Kafka: clients connect to it as to a broker, and it enforces their quotas."""
    escape_what_it_cannot_show()


@main.command()
@config_option
@click.option(
    "--log-level",
    type=click.Choice(log.LEVELS),
    default="info",
    show_default=True,
    help="Least severe level to log.",
)
def run(path: Path, log_level: str) -> None:
    """Serve until SIGTERM or SIGINT, then drain connections and exit.

    Reloads the file when it changes, and on SIGHUP: changed quotas take effect, other changed keys need a
    restart.
    """
    from proxy.server.system.garbage_collection import gc_paused

    # Without the pause, collections take a twelfth of the imports' time, and free nothing.
    with gc_paused():
        import_kio()
        from proxy.cli.serve import serve

    try:
        sys.exit(serve(path, log_level))
    except QuotaProxyError as error:
        _fail(error)


@main.command(hidden=True)
@config_option
@click.option("--log-level", type=click.Choice(log.LEVELS), required=True)
@click.option("--number", type=int, required=True)
@click.option("--channel", type=int, required=True)
@click.option("--ports", type=int, required=True)
@click.option("--counts", type=int, required=True)
@click.option("--place", type=int, required=True)
def worker(
    path: Path, log_level: str, *, number: int, channel: int, ports: int, counts: int, place: int
) -> None:
    """One of several workers; `run` starts it."""
    from proxy.server.system.garbage_collection import gc_paused

    with gc_paused():
        import_kio()
        from proxy.cli.serve import serve_worker
        from proxy.server.workers.starts import FromSupervisor

    try:
        sys.exit(serve_worker(path, log_level, FromSupervisor(number, channel, ports, counts, place)))
    except QuotaProxyError as error:
        _fail(error)


@main.command()
@config_option
def check(path: Path) -> None:
    """Validate a configuration and print a summary.

    Shows for each listener who can connect, how clients are identified, and which quotas apply. Does not
    connect to the cluster.
    """
    import_kio()
    from proxy.cli.check import check as describe_file

    try:
        for line in describe_file(path):
            click.echo(line)
    except QuotaProxyError as error:
        _fail(error)


def admin_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the admin port. The command gets `url`, `token_file` and `ca`."""
    for option in (
        click.option(
            "--ca",
            metavar="FILE",
            help="File with the certificate authorities (PEM) of the admin port; default: those of the "
            "system.",
        ),
        click.option(
            "--token-file",
            metavar="FILE",
            help="File with the token of the admin port (admin.token_file); default: no token.",
        ),
        click.option(
            "--admin",
            "url",
            metavar="URL",
            default="http://127.0.0.1:9644",
            show_default=True,
            help="URL of the proxy's admin port.",
        ),
    ):
        command = option(command)
    return command


def _admin_port(url: str, token_file: str | None, ca: str | None) -> "AdminPort":
    """The admin port of the options. Raises SettingsError."""
    if not _is_admin_url(url):
        raise click.BadParameter(
            f"expected http://HOST:PORT or https://HOST:PORT, got {url!r}", param_hint="--admin"
        )
    from proxy.cli.admin_port import AdminPort
    from proxy.security.secrets import read_secret

    token = None if token_file is None else read_secret(token_file, None)
    return AdminPort(url, token, ca)


@main.command()
@admin_options
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    help="Seconds between updates.",
)
@click.option(
    "--once",
    is_flag=True,
    help="Print once and exit; the default if standard output is not a terminal, or TERM is dumb.",
)
def top(url: str, token_file: str | None, ca: str | None, interval: float, once: bool) -> None:
    """Show the current use of a running proxy's quotas.

    Throttled clients come first, then those that use the most of their quota. Ctrl-C exits.
    """
    try:
        port = _admin_port(url, token_file, ca)
        from rich.console import Console

        from proxy.cli.top import follow, show

        console = Console()
        if once or not console.is_terminal or console.is_dumb_terminal:
            show(port, console)
        else:
            follow(port, console, interval)
    except QuotaProxyError as error:
        _fail(error)


@main.command()
@admin_options
@click.option("--user", type=NAME, help="The user; default: ANONYMOUS.")
@click.option("--client-id", type=NAME, help="The client id; default: none.")
@click.option("--ip", metavar="ADDRESS", help="The address.")
@click.option("--topic", type=NAME, help="The topic.")
@click.option("--broker", metavar="ID", help="The broker's node id.")
def explain(url: str, token_file: str | None, ca: str | None, **names: str | None) -> None:
    """Show which quotas of a running proxy apply, and why.

    For each quota: the value that applies and its entity; then every entity whose quota may apply, in order
    of precedence, with the values of the configuration file and of tools. For clients, also how many of
    their long lists of partitions, topics or groups wait for each other.
    """
    given = {option.replace("_", "-"): name for option, name in names.items() if name is not None}
    for part, name in given.items():
        if not name:
            raise click.UsageError(f"--{part} requires a name")
    sorts = [part for part in ("ip", "topic", "broker") if part in given]
    if not given or (sorts and len(given) > 1):
        raise click.UsageError("set --user, --client-id or both, or --ip, --topic or --broker")
    try:
        port = _admin_port(url, token_file, ca)
        from proxy.cli.explain import ask, line_of_lists, lines

        quotas, note, lists = ask(port, given)
        if note:
            click.echo(f"quota-proxy: {note}", err=True)
        for line in lines(quotas):
            click.echo(line)
        if lists is not None:
            click.echo(line_of_lists(lists))
    except QuotaProxyError as error:
        _fail(error)


def _is_admin_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no number
        return False


@main.command()
def version() -> None:
    """Print the version, and whether the data path is compiled."""
    build = "compiled" if proxy.COMPILED else "interpreted"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    click.echo(f"quota-proxy {proxy.__version__} ({python}, {build})")


@main.command()
@click.option("--keep", is_flag=True, help="Leave everything running until Ctrl-C.")
def demo(keep: bool) -> None:
    """Enforce quotas of several tenants on a real Apache Kafka.

    Requires Java 17 or newer; downloads Kafka if it is missing. Stops everything that it started.
    """
    from proxy.demo.demo import main as run_demo

    sys.exit(run_demo(keep))


main.add_command(quotas)


def _fail(error: QuotaProxyError) -> NoReturn:
    click.echo(f"quota-proxy: {error}", err=True)
    sys.exit(2 if isinstance(error, SettingsError) else 1)
