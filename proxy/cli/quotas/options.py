"""Options that the commands share: the server, the entity, the expiry."""

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click

from proxy.cli.quotas.entity import TYPES, Entity, make_entity
from proxy.cli.quotas.values import parse_duration, parse_time
from proxy.cli.terminal import NAME
from proxy.errors import SettingsError
from proxy.quota.identity import CLIENT_ID, DEFAULT_IN_YAML, IP, USER
from proxy.quota.limits.resources import BROKER, TOPIC, broker_name
from proxy.security.access import PLAINTEXT, Access
from proxy.upstream.addresses import split_address
from proxy.upstream.cluster_access import ClusterAccess

Command = Callable[..., None]
CONNECT_SECONDS: Final = 10.0
"""The timeout of connecting to one server, with TLS and login."""
NAMED: Final = {
    USER: ("NAME", "The user with this name.", "user"),
    CLIENT_ID: ("NAME", "The client id with this name.", "client id"),
    IP: ("ADDRESS", "The IP address; with a quota proxy also a network such as 10.0.0.0/8.", "IP address"),
    TOPIC: ("NAME", "The topic with this name (quota proxies only).", "topic"),
    BROKER: ("ID", "The broker with this node id (quota proxies only).", "broker"),
}
"""For each entity type: the metavar and help of its option, and its name in a sentence."""


class AddressesParam(click.ParamType[list[tuple[str, int]]]):
    """A comma-separated list of HOST:PORT, as (host, port)."""

    name = "HOST:PORT"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[tuple[str, int]]:
        try:
            return [split_address(text.strip()) for text in value.split(",")]
        except ValueError as error:
            self.fail(str(error), param, ctx)


def bootstrap_option(command: Command) -> Command:
    """Add --bootstrap and --access. The command gets them as one argument `cluster`."""

    @functools.wraps(command)
    def wrapper(bootstrap: list[tuple[str, int]], access: Path | None, **values: Any) -> None:
        try:
            given = PLAINTEXT if access is None else _read_access(access)
        except SettingsError as error:
            raise click.BadParameter(str(error), param_hint="--access") from error
        command(cluster=ClusterAccess(tuple(bootstrap), CONNECT_SECONDS, given), **values)

    decorated: Command = wrapper
    decorated = click.option(
        "--access",
        metavar="FILE",
        type=click.Path(path_type=Path, readable=False),
        help="YAML file with `tls` and `sasl` of the connection, as `upstream` in the proxy's configuration; "
        "default: plaintext, without a login.",
    )(decorated)
    return click.option(
        "--bootstrap",
        type=AddressesParam(),
        required=True,
        help="The proxy or a broker; a list (HOST:PORT,HOST:PORT) is tried in order.",
    )(decorated)


dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only have the server validate the request (validate_only)."
)


def expiry_options(command: Command) -> Command:
    """Add --expires and --for. The command gets them as one argument `until`, ms since the epoch or None."""

    @functools.wraps(command)
    def wrapper(expires: str | None, duration: str | None, **values: Any) -> None:
        command(until=_until(expires, duration), **values)

    decorated: Command = wrapper
    only = "(quota proxies only); default: the change is lasting."
    for_help = f"Duration of a temporary change, such as 2h {only}"
    decorated = click.option("--for", "duration", metavar="DURATION", help=for_help)(decorated)
    return click.option(
        "--expires",
        metavar="TIME",
        help=f"End of a temporary change, such as 2026-12-01T00:00Z {only}",
    )(decorated)


def entity_options(
    *, required: bool, types: Sequence[str] = TYPES, names: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Command], Command]:
    """Add --user, --user-default and so on for these entity types, as kafka-configs has them. The command
    gets them as one argument `entity`. `names`: other names of the options, by entity type.
    """
    options = {kind: names.get(kind, kind) for kind in types}

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(**values: Any) -> None:
            named = {kind: values.pop(_variable(option)) for kind, option in options.items()}
            default = {kind: values.pop(f"{_variable(option)}_default") for kind, option in options.items()}
            entity = _entity(named, default, options)
            if required and not entity:
                listed = ", ".join(f"--{option}" for option in options.values())
                raise click.UsageError(f"no entity; set {listed}, or one of these with the suffix -default")
            command(entity=entity, **values)

        decorated: Command = wrapper
        for kind, option in reversed(options.items()):
            metavar, named_help, what = NAMED[kind]
            default_help = f"The default {what}: each {what} without a quota by name."
            decorated = click.option(f"--{option}-default", is_flag=True, help=default_help)(decorated)
            decorated = click.option(f"--{option}", metavar=metavar, type=NAME, help=named_help)(decorated)
        return decorated

    return decorate


def _read_access(path: Path) -> Access:
    """Read the file of --access. Only commands with this option need a reader of YAML."""
    from proxy.cli.quotas.access_file import read_access

    return read_access(path)


def _until(expires: str | None, duration: str | None) -> int | None:
    if expires is not None and duration is not None:
        raise click.UsageError("--expires and --for exclude each other; keep one of them")
    now = datetime.now(UTC)
    try:
        if expires is not None:
            return parse_time(expires, now)
        return None if duration is None else parse_duration(duration, now)
    except ValueError as error:
        raise click.UsageError(f"{'--for' if expires is None else '--expires'}: {error}") from error


def _variable(option: str) -> str:
    return option.replace("-", "_")


def _entity(named: dict[str, str | None], default: dict[str, bool], options: Mapping[str, str]) -> Entity:
    """Return the entity of the options; empty if none is set. Raises click.UsageError."""
    parts: list[tuple[str, str | None]] = []
    for kind, name in named.items():
        option = options[kind]
        if name is not None and default[kind]:
            raise click.UsageError(f"--{option} and --{option}-default exclude each other; keep one of them")
        if name in ("", DEFAULT_IN_YAML):
            raise click.UsageError(
                f"--{option} requires a name; use --{option}-default for the default entity"
            )
        if name is not None and kind == BROKER:
            name = broker_name(name)
            if name is None:
                raise click.UsageError(f"--{option} requires a broker's node id, such as 1")
        if name is not None or default[kind]:
            parts.append((kind, name))
    alone = [options[kind] for kind, _ in parts if kind in (TOPIC, BROKER)]
    if alone and len(parts) > 1:
        raise click.UsageError(f"--{alone[0]} excludes the other options for entities")
    return make_entity(parts)
