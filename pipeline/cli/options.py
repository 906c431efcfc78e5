"""The options that jobs of `quota-pipeline` have in common."""

import math
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from pipeline.cluster.access import PLAINTEXT, read_access
from pipeline.errors import InputError
from pipeline.jobs.job import Options
from pipeline.storage.formats import FORMATS as TABLE_FORMATS
from pipeline.storage.formats import PARQUET
from pipeline.storage.sources import FORMATS, local_path
from pipeline.window import make_window

FILE = click.Path(path_type=Path)
_TABLE_NAME = re.compile(r"(?:\w+|`[^`]+`)(?:\.(?:\w+|`[^`]+`))*")


class Finite(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number", param, ctx)
        return number


RATE = Finite(min=0, min_open=True)


_COMMON_OPTIONS: Final = (
    click.option("--out", required=True, help="Folder for the tables."),
    click.option(
        "--from",
        "start",
        metavar="TS",
        help="Start of the window, inclusive, such as 2026-01-31T14:00 (UTC). Default: no bound.",
    ),
    click.option("--to", "end", metavar="TS", help="End of the window, exclusive (UTC). Default: no bound."),
    click.option(
        "--master", metavar="URL", help="Spark's master. Default: that of spark-submit, or local[*]."
    ),
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; may be repeated."),
    click.option(
        "--kafka", multiple=True, metavar="KEY=VALUE", help="A Kafka client setting; may be repeated."
    ),
    click.option(
        "--access",
        type=FILE,
        help="YAML file with `tls` and `sasl` for connections to brokers, with the keys below `upstream` in "
        "the proxy's configuration. Default: plaintext, without a login.",
    ),
    click.option(
        "--events-format",
        "form",
        type=click.Choice(FORMATS),
        help="Format of the files of --events. Default: that of the table's log in a local folder, or else "
        "Parquet if the name of any file ends in .parquet, otherwise JSON lines.",
    ),
    click.option(
        "--with-late",
        is_flag=True,
        help="Also count the events that a stream wrote to late/, beside the events/ of --events.",
    ),
)
"""The options of all commands, in the order of their help."""


def with_options(run: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all commands have; `run` gets them as one argument."""

    @wraps(run)
    def command(
        *,
        events: str | None,
        out: str,
        start: str | None,
        end: str | None,
        master: str | None,
        conf: tuple[str, ...],
        kafka: tuple[str, ...],
        form: str | None,
        access: Path | None,
        with_late: bool,
        table_format: str = PARQUET,
        catalog_table: str | None = None,
        **own: object,
    ) -> None:
        if not out:
            raise InputError("--out is empty; expected a folder")
        if catalog_table is not None and not _TABLE_NAME.fullmatch(catalog_table):
            raise InputError(
                f"--catalog-table {catalog_table} is not a table name, such as catalog.schema.table"
            )
        options = Options(
            events=events or "",
            out=local_path(out).rstrip("/") or "/",
            window=make_window(start, end),
            master=master,
            settings=_settings("--conf", conf),
            kafka_settings=_settings("--kafka", kafka),
            form=form,
            access=PLAINTEXT if access is None else read_access(access),
            with_late=with_late,
            table_format=table_format,
            catalog_table=catalog_table,
        )
        run(options, **own)

    for option in reversed(_COMMON_OPTIONS):
        command = option(command)
    return command


def in_lake(run: Callable[..., None]) -> Callable[..., None]:
    """Add the options of jobs that write one table."""
    with_format = click.option(
        "--format",
        "table_format",
        type=click.Choice(TABLE_FORMATS),
        default=PARQUET,
        show_default=True,
        help="Format of the table.",
    )
    with_name = click.option(
        "--catalog-table",
        metavar="NAME",
        help="Make the table known to Spark's catalog by this name. Default: do not.",
    )
    return with_format(with_name(run))


def _settings(option: str, given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    for setting in given:
        if "=" not in setting:
            raise InputError(f"{option} {setting} has no value; write KEY=VALUE")
    return tuple((key, value) for key, _, value in (setting.partition("=") for setting in given))
