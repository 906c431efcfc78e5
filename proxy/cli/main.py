"""The `quota-proxy` command. Exit codes: 0 done, 1 failed while running, 2 the configuration is wrong."""

import logging
import platform
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

import proxy
from proxy.cli.check import describe
from proxy.cli.quotas.commands import quotas
from proxy.config.load import located_in
from proxy.config.open_files import open_files
from proxy.errors import QuotaProxyError, SettingsError
from proxy.quota.kinds import load_kinds
from proxy.quota.quota import QuotaKind
from proxy.server.garbage_collection import gc_paused
from proxy.store.from_settings import Configuration, load_configuration
from proxy.telemetry import log

OTHER_FILES: Final = 256
"""File descriptors for what is not a client's or a broker's socket: listening ports, libraries, the log."""

config_option = click.option(
    "--config",
    "path",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="The configuration, YAML.",
)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="config/quota-proxy.yaml is a configuration with every key; docs/ explains them. "
    "Exit codes: 0 done, 1 failed or rejected, 2 the usage or a file is wrong.",
)
@click.version_option(proxy.__version__, prog_name="quota-proxy")
def main() -> None:
    """Quota proxy for Apache Kafka: clients connect to it as to a broker, and are held to their quotas."""


@main.command()
@config_option
@click.option("--log-level", type=click.Choice(log.LEVELS), default="info", show_default=True)
def run(path: Path, log_level: str) -> None:
    """Serve until SIGTERM or SIGINT, then drain.

    The file's quotas are taken anew when it changes, and on SIGHUP; the rest of it takes a restart.
    """
    kinds = load_kinds()
    with gc_paused():
        configuration = _load(path, kinds)
    log.set_up(log_level)
    allow_files(2 * configuration.settings.limits.max_connections + OTHER_FILES)
    from proxy.server.app import run as serve

    try:
        sys.exit(serve(configuration, kinds, path))
    except QuotaProxyError as error:
        _fail(error)


@main.command()
@config_option
def check(path: Path) -> None:
    """Validate a configuration and print what it comes to.

    Who can connect to each listener, how clients are named, and which quotas that gives. Nothing is asked
    of the cluster.
    """
    for line in describe(_load(path, load_kinds())):
        click.echo(line)


@main.command()
@click.option(
    "--admin",
    "url",
    metavar="URL",
    default="http://127.0.0.1:9644",
    show_default=True,
    help="The proxy's admin port.",
)
@click.option(
    "--token-file", metavar="FILE", help="A file with the token that the port wants (admin.token_file)."
)
@click.option(
    "--ca", metavar="FILE", help="Who signs the port's certificate, PEM; else who the system trusts."
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    help="Seconds between looks.",
)
@click.option("--once", is_flag=True, help="Print it once, as is done anyway where no terminal is.")
def top(url: str, token_file: str | None, ca: str | None, interval: float, once: bool) -> None:
    """Show what a running proxy's quotas do now.

    Those that hold somebody back come first, then those that are used the most. Ctrl-C ends it.
    """
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter(
            f"expected http://HOST:PORT or https://HOST:PORT, got {url!r}", param_hint="--admin"
        )
    from rich.console import Console

    from proxy.cli.top import AdminPort, follow, show
    from proxy.security.secrets import read_secret

    console = Console()
    try:
        token = None if token_file is None else read_secret(token_file, None)
        port = AdminPort(url, token, ca)
        if once or not console.is_terminal:
            show(port, console)
        else:
            follow(port, console, interval)
    except QuotaProxyError as error:
        _fail(error)


@main.command()
def version() -> None:
    """Print the version, and whether the hot path is compiled."""
    build = "compiled" if proxy.COMPILED else "interpreted"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    click.echo(f"quota-proxy {proxy.__version__} ({python}, {build})")


@main.command()
def demo() -> None:
    """Show tenants held to their quotas, on a real Apache Kafka.

    Takes Java 17 or newer; Kafka is fetched where it is missing. Nothing is left running.
    """
    from proxy.demo.demo import main as run_demo

    sys.exit(run_demo())


main.add_command(quotas)


def allow_files(wanted: int) -> None:
    """Lifts this process's limit of open files as far as it may, and says so where that is not enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        logging.getLogger(__name__).warning(
            "at most %d files may be open, fewer than the %d that limits.max_connections can need; "
            "raise the hard limit (ulimit -Hn, LimitNOFILE) or lower limits.max_connections",
            allowed,
            wanted,
        )


def _load(path: Path, kinds: Sequence[QuotaKind]) -> Configuration:
    try:
        configuration = load_configuration(path, kinds)
        with located_in(path):
            open_files(configuration.settings)
        return configuration
    except SettingsError as error:
        _fail(error)


def _fail(error: QuotaProxyError) -> NoReturn:
    click.echo(f"quota-proxy: {error}", err=True)
    sys.exit(2 if isinstance(error, SettingsError) else 1)
