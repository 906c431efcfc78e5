"""The `quota-pipeline` command. Exit codes: 0 success, 1 failure, 2 invalid input."""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.console import Console

try:
    from pipeline.spark.failures import FAILURES, explain
except ModuleNotFoundError as missing:
    raise SystemExit(
        "quota-pipeline needs Apache Spark for Python: pip install '.[pipeline]' in the repository"
    ) from missing

from pipeline.cli.options import FILE, RATE, Finite, in_lake, with_options
from pipeline.errors import InputError, PipelineError
from pipeline.inputs.prices import read_prices
from pipeline.inputs.quota_file import SCOPES, read_quotas
from pipeline.inputs.tenants import read_tenants
from pipeline.jobs import batch
from pipeline.jobs.job import Job, Options
from pipeline.jobs.prepare import write_archive
from pipeline.jobs.stream import MODES, StreamOptions, run_stream
from pipeline.transforms.hours import DAY, HOUR
from pipeline.transforms.reassignment import plan
from pipeline.transforms.recommend import DEFAULT_FLOOR, DEFAULT_SAMPLES, ENTITIES, PER_BOTH, Rules


class Jobs(click.Group):
    """Prints an error as one sentence and sets the exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PipelineError as error:
            failure = error
        except FAILURES as error:
            failure = explain(error)
        click.echo(f"quota-pipeline: {failure}", err=True)
        sys.exit(2 if isinstance(failure, InputError) else 1)


@click.group(cls=Jobs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kafka-quota-proxy", prog_name="quota-pipeline")
def main() -> None:
    """Compute tables, bills, quotas and plans from the quota proxy's usage events, with Apache Spark."""


def job(run: Callable[..., None]) -> Callable[..., None]:
    """Make a command with the options of every job; `run` gets the Job and the command's own options."""

    @main.command(name=run.__name__, help=run.__doc__)
    @click.option(
        "--events", required=True, help="File or folder with usage events, or kafka://HOST:PORT/TOPIC."
    )
    @with_options
    @wraps(run)
    def command(options: Options, **own: object) -> None:
        with Job(options, Console(stderr=True, highlight=False)) as running:
            run(running, **own)

    return command


@job
@in_lake
@click.option(
    "--by", type=click.Choice([HOUR, DAY]), default=HOUR, show_default=True, help="Period of each row."
)
def usage(job: Job, by: str) -> None:
    """Write bytes, requests and rates by tenant, partition and hour."""
    batch.write_usage(job, by)


@job
@in_lake
@click.option(
    "--stream",
    type=click.Choice(MODES),
    help="Read a topic as a stream, from where the last run ended: `once` stops at the end of the topic, "
    "`follow` continues until SIGTERM. Default: read all events, and add those that the table lacks.",
)
@click.option(
    "--late",
    default="1 hour",
    show_default=True,
    help="A Spark interval. A stream writes events to late/ that are older than the newest one by more than "
    "this.",
)
@click.option(
    "--every", default=10.0, show_default=True, type=RATE, help="Seconds between a stream's batches."
)
@click.option("--checkpoint", help="Folder of the stream's checkpoint. Default: _checkpoint in --out.")
@click.option(
    "--recover",
    is_flag=True,
    help="Read the topic from its first record, and skip the events that the tables have. Use it if the "
    "checkpoint is lost or the topic was truncated.",
)
@click.option(
    "--max-offsets-per-trigger",
    "most",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of records in a batch of a stream. Default: all that there are.",
)
@click.option(
    "--compact", is_flag=True, help="Join small files of the table: at the end, and a stream once per hour."
)
def ingest(
    job: Job,
    *,
    stream: str | None,
    late: str,
    every: float,
    checkpoint: str | None,
    recover: bool,
    most: int | None,
    compact: bool,
) -> None:
    """Write events to a table by date, each event once."""
    if stream is None:
        if recover:
            raise InputError("--recover requires --stream; without --stream, every run reads all events")
        batch.append(job, compact=compact)
    else:
        options = StreamOptions(
            mode=stream,
            late=late,
            every=every,
            checkpoint=checkpoint,
            recover=recover,
            most=most,
            compact=compact,
        )
        run_stream(job, options)


@job
@in_lake
def throttle(job: Job) -> None:
    """Write the throttling and rejections of each tenant, by hour."""
    batch.write_throttle(job)


@job
@in_lake
@click.option("--prices", required=True, type=FILE, help="YAML file with prices.")
def chargeback(job: Job, prices: Path) -> None:
    """Write the cost of each tenant; the amounts add up exactly to the cluster's bill."""
    batch.write_chargeback(job, read_prices(prices))


@job
@click.option(
    "--headroom",
    type=RATE,
    default=1.3,
    show_default=True,
    help="Recommend this many times the rate that the tenant used.",
)
@click.option(
    "--per",
    type=click.Choice(ENTITIES),
    default=PER_BOTH,
    show_default=True,
    help="Entities that get quotas.",
)
@click.option(
    "--capacity",
    type=RATE,
    metavar="B/S",
    help="Capacity of a broker in each direction, in bytes/s, which the quotas of its users together do not "
    "exceed. Default: no bound.",
)
@click.option(
    "--current",
    type=FILE,
    help="YAML file with the current quotas, which --step and --review compare with. Default: no quotas.",
)
@click.option(
    "--step",
    type=Finite(0, 1),
    default=0.25,
    show_default=True,
    help="Largest decrease of a quota, as a part of the current quota.",
)
@click.option(
    "--floor",
    type=RATE,
    default=DEFAULT_FLOOR,
    show_default=True,
    metavar="B/S",
    help="Smallest quota in bytes/s, unless --capacity requires a smaller one.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=DEFAULT_SAMPLES,
    show_default=True,
    help="Number of intervals with traffic that a tenant needs to get a quota.",
)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="Scope of a quota: each broker of each proxy, or the whole cluster. Default: the scope in "
    "--current, or else broker.",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help="Read the current quotas from this proxy or broker. --current then gives only their settings, "
    "such as algorithm and scope.",
)
@click.option(
    "--events-cluster",
    metavar="NAME",
    help="Use only the events of this cluster; with --bootstrap, required if they are of several clusters.",
)
@click.option(
    "--review",
    is_flag=True,
    help="Print the difference from the current quotas, as `quota-proxy quotas diff`, and what the "
    "quotas would have done in the last week of the events. Sets nothing.",
)
@click.option("--apply", is_flag=True, help="Print the review, then set the quotas at --bootstrap.")
def recommend(
    job: Job,
    *,
    headroom: float,
    per: str,
    capacity: float | None,
    current: Path | None,
    step: float,
    floor: float,
    samples: int,
    scope: str | None,
    bootstrap: str | None,
    events_cluster: str | None,
    review: bool,
    apply: bool,
) -> None:
    """Recommend byte rates from the usage of tenants, as a file for `quota-proxy quotas import`."""
    # Kafka's protocol and the pages of reports are a third of all imports; other commands save them.
    from pipeline.jobs.recommendation import Recommending, write_recommendation

    options = Recommending(
        rules=Rules(headroom, capacity, step, floor, samples, per),
        current=None if current is None else read_quotas(current),
        scope=scope,
        bootstrap=bootstrap,
        review=review,
        apply=apply,
        compared=str(current or ""),
        events_cluster=events_cluster,
    )
    write_recommendation(job, options)


@job
@in_lake
@click.option(
    "--quotas",
    required=True,
    type=FILE,
    help="YAML file with the quotas to replay, in the format of the proxy's configuration.",
)
def replay(job: Job, quotas: Path) -> None:
    """Replay the recorded traffic against other quotas."""
    batch.write_replay(job, read_quotas(quotas))


@job
@click.option(
    "--prices", type=FILE, help="YAML file with prices; adds the cost of each tenant, and its invoice."
)
@click.option(
    "--quotas", type=FILE, help="YAML file with quotas; adds how close each tenant is to its limit."
)
@click.option(
    "--tenants",
    type=FILE,
    help="YAML file with names and cost centers of tenants; adds them to the invoices. Requires --prices.",
)
@click.option(
    "--previous",
    metavar="FOLDER",
    help="The --out of the previous period's report, with whose bill the report compares. Default: the bill "
    "of the events in the period of the same length before --from.",
)
@click.option(
    "--invoice-files/--no-invoice-files",
    "files",
    default=True,
    show_default=True,
    help="Also write each invoice as a page of its own, in invoice-files/. Requires --prices.",
)
def report(
    job: Job,
    prices: Path | None,
    quotas: Path | None,
    tenants: Path | None,
    previous: str | None,
    files: bool,
) -> None:
    """Write an HTML report, with an invoice for each tenant, and its tables."""
    from pipeline.jobs.report import ReportOptions, write_report

    if tenants is not None and prices is None:
        raise InputError("--tenants requires --prices; without prices, there are no invoices")
    options = ReportOptions(
        None if prices is None else read_prices(prices),
        None if quotas is None else read_quotas(quotas),
        None if tenants is None else read_tenants(tenants),
        previous,
        files,
    )
    write_report(job, options)


@main.command()
def prepare() -> None:
    """Write an archive of Java's classes, with which later jobs start in less time."""
    console = Console(stderr=True, highlight=False)
    console.print(f"{write_archive(console)}: Java reads its classes from here", markup=False, soft_wrap=True)


@main.command()
@click.option(
    "--cluster", type=FILE, help="JSON file with brokers, partitions and moves. Set this or --bootstrap."
)
@click.option("--bootstrap", metavar="HOST:PORT", help="Read the cluster from this broker instead of a file.")
@click.option(
    "--moves",
    type=FILE,
    help="JSON file with the moves, as for kafka-reassign-partitions. Default: those in --cluster; required "
    "with --bootstrap.",
)
@click.option(
    "--throttle",
    type=RATE,
    metavar="B/S",
    help="Plan with this throttle, in bytes/s. Default: one that completes the moves in --within.",
)
@click.option(
    "--network",
    type=RATE,
    metavar="B/S",
    help="Network capacity of a broker, in bytes/s, which bounds the throttle. Default: no bound.",
)
@click.option(
    "--within",
    type=RATE,
    metavar="SECONDS",
    help="Time for the reassignment: compute the throttle that completes it in this time, or check that "
    "--throttle does. Default: 3600 without --throttle.",
)
@click.option(
    "--events",
    help="Compute inbound rates from these events. Default: the rates in --cluster, if it has them.",
)
@click.option(
    "--events-cluster",
    metavar="NAME",
    help="Name of the cluster in the events; required if they are of several clusters.",
)
@with_options
def reassign(
    options: Options,
    *,
    cluster: Path | None,
    bootstrap: str | None,
    moves: Path | None,
    throttle: float | None,
    network: float | None,
    within: float | None,
    events_cluster: str | None,
) -> None:
    """Plan the throttle of a partition reassignment, and estimate its duration (KIP-73)."""
    from pipeline.jobs import plan_move

    found = plan_move.load(cluster, bootstrap, moves, options.access)
    if options.events:
        with Job(options, Console(stderr=True, highlight=False)) as running:
            found = plan_move.with_rates(found, batch.inbound_rates(running, events_cluster))
    plan_move.write(plan(found, throttle, network, within), options)


if __name__ == "__main__":
    main()
