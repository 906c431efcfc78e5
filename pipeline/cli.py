"""The `quota-pipeline` command. Exit codes: 0 done, 1 failed while running, 2 the input is wrong."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click
from pyspark.errors import PySparkException
from rich.console import Console

from pipeline.errors import InputError, PipelineError
from pipeline.jobs import batch
from pipeline.jobs.job import Job, Options
from pipeline.transforms.usage import DAY, HOUR
from pipeline.window import make_window


class Jobs(click.Group):
    """Shows errors as sentences."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PipelineError as error:
            click.echo(f"quota-pipeline: {error}", err=True)
            sys.exit(2 if isinstance(error, InputError) else 1)
        except PySparkException as error:
            click.echo(f"quota-pipeline: Spark failed: {error}", err=True)
            sys.exit(1)


@click.group(cls=Jobs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kafka-quota-proxy", prog_name="quota-pipeline")
def main() -> None:
    """What the quota proxy's usage events come to, on Apache Spark."""


def job(run: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of every job; `run` gets the Job and the command's own options."""

    @main.command(name=run.__name__, help=run.__doc__)
    @click.option("--events", required=True, help="File or folder, or kafka://HOST:PORT/TOPIC.")
    @click.option("--out", required=True, help="Folder for the tables.")
    @click.option("--from", "start", metavar="TS", help="The first time, such as 2026-01-31T14:00 (UTC).")
    @click.option("--to", "end", metavar="TS", help="The time after the last.")
    @click.option("--master", default="local[*]", show_default=True, metavar="URL", help="Spark's master.")
    @click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
    @wraps(run)
    def command(
        events: str,
        out: str,
        start: str | None,
        end: str | None,
        master: str,
        conf: tuple[str, ...],
        **own: object,
    ) -> None:
        options = Options(events, out, make_window(start, end), master, _settings(conf))
        with Job(options, Console(stderr=True, highlight=False)) as running:
            run(running, **own)

    return command


def _settings(conf: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    for setting in conf:
        if "=" not in setting:
            raise InputError(f"--conf {setting} has no value; write KEY=VALUE")
    return tuple((key, value) for key, _, value in (setting.partition("=") for setting in conf))


@job
@click.option("--by", type=click.Choice([HOUR, DAY]), default=HOUR, show_default=True)
def usage(job: Job, by: str) -> None:
    """Bytes, requests and rates by tenant, partition and hour."""
    batch.write_usage(job, by)
