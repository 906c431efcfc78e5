"""The job that recommends quotas, and on request compares, tries and sets them."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import click
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.cluster.quotas import changes_to, read_limits, set_quotas
from pipeline.errors import InputError, PipelineError
from pipeline.inputs.quota_file import CLUSTER, Quotas, QuotaSet, to_yaml
from pipeline.jobs.batch import check_cluster
from pipeline.jobs.job import Job
from pipeline.jobs.review import Effect, Review, review_text
from pipeline.schema import SKIPPED
from pipeline.storage.filesystem import literal
from pipeline.storage.tables import write_table
from pipeline.transforms.events import with_period
from pipeline.transforms.recommend import Peak, Recommendation, Rules, peaks, recommend
from pipeline.transforms.replay.replay import replay, untried
from pipeline.window import Window
from proxy.quota.identity import QuotaEntity

_WEEK_MS: Final = 7 * 86_400_000
"""The review replays this much of the events: a week has all kinds of days."""


@dataclass(frozen=True, slots=True)
class Recommending:
    """rules: how rates become quotas. current: the file of --current. scope: None for the scopes in it.
    bootstrap: the server whose quotas are the current ones. review: whether to compare the quotas with the
    current ones and to replay the last week. apply: whether to set them at the server, too.
    """

    rules: Rules
    current: QuotaSet | None = None
    scope: str | None = None
    bootstrap: str | None = None
    review: bool = False
    apply: bool = False
    compared: str = ""
    """How messages name the current quotas."""
    events_cluster: str | None = None
    """The cluster whose events count; None: those of all clusters."""


def write_recommendation(job: Job, options: Recommending) -> None:
    """Write `quotas.yaml`, with a quota for each tenant, and `skipped/`, the tenants without a quota; with
    `review`, also `quotas.diff` and `replay/`.
    """
    if options.apply and options.bootstrap is None:
        raise InputError("--apply requires --bootstrap, the server at which to set the quotas")
    review = options.review or options.apply
    tables = ("skipped", *(("replay",) if review else ()))
    for name in tables:
        job.claim(name)
    known = _current(job, options)
    for name in tables:
        job.lake.check(name)

    def scope_of(entity: QuotaEntity) -> str:
        return options.scope or known.scope(entity)

    scopes = {options.scope} if options.scope else {known.settings.scope, *known.scopes.values()}
    events = job.kept_events() if review else job.events()
    found = [Peak(*row) for row in peaks(_of_cluster(events, options), options.rules.per, scopes).collect()]
    if options.events_cluster is not None and not found:
        check_cluster(events, options.events_cluster)
    check_clusters(job, options, {peak.cluster for peak in found})
    made = recommend(found, options.rules, known.clients, scope_of)
    of_cluster = {entity: CLUSTER for entity in made.quotas if scope_of(entity) == CLUSTER}
    file = job.write_text("quotas.yaml", to_yaml(made.quotas, of_cluster))
    job.say(f"{file}: quotas of {len(made.quotas):,} entities")
    table = with_period(job.spark.createDataFrame(made.skipped, SKIPPED), job.period())
    folder = write_table(table, job.options.out, "skipped")
    if made.skipped:
        job.say(f"{len(made.skipped):,} rates got no quota; {folder} has them with the reasons", "bold")
    if review:
        _review(job, options, known, made, of_cluster)
    job.report_quality()


def _of_cluster(events: DataFrame, options: Recommending) -> DataFrame:
    cluster = options.events_cluster
    return events if cluster is None else events.where(F.col("cluster") == cluster)


def check_clusters(job: Job, options: Recommending, clusters: Collection[str]) -> None:
    """Raise InputError if the events are of several clusters, and --bootstrap is a server of one of them."""
    listed = ", ".join(sorted(clusters))
    if options.events_cluster is not None and not clusters:
        job.say(f"There is no traffic of the cluster {options.events_cluster} in the events", "bold")
    if len(clusters) < 2:
        return
    if options.bootstrap is not None:
        raise InputError(
            f"--events has the clusters {listed}, and --bootstrap is of one; choose it with --events-cluster"
        )
    job.say(f"The quotas are for the clusters {listed} together; --events-cluster selects one", "bold")


def _current(job: Job, options: Recommending) -> QuotaSet:
    """The current quotas: those of --bootstrap, with the settings of the file of --current."""
    known = QuotaSet(Quotas()) if options.current is None else options.current
    if options.bootstrap is None:
        return known
    return replace(known, clients=read_limits(options.bootstrap, job.options.access))


def _review(
    job: Job, options: Recommending, known: QuotaSet, made: Recommendation, of_cluster: dict[QuotaEntity, str]
) -> None:
    """Compare the quotas with the current ones, replay the last week, and set the quotas if wanted."""
    changes = changes_to(known.clients, made.quotas)
    clients = {
        entity: {**known.clients.get(entity, {}), **made.quotas.get(entity, {})}
        for entity in {**known.clients, **made.quotas}
    }
    scopes = {**known.scopes, **of_cluster}
    period, effects = _last_week(job, options, replace(known, clients=clients, scopes=scopes))
    compared = options.bootstrap or options.compared
    text = review_text(Review(compared, changes, effects, period, made.skipped))
    click.echo(text, nl=False)
    job.say(f"{job.write_text('quotas.diff', text)}: the changes, and their effect")
    if of_cluster:
        job.say(
            f"{len(of_cluster):,} quotas have the scope {CLUSTER}, which Kafka does not store; set "
            "quotas.scope in the configuration of the proxies",
            "bold",
        )
    if not options.apply:
        job.say("No quota is set; use --apply with --bootstrap, or quota-proxy quotas import")
        return
    rejected = set_quotas(str(options.bootstrap), changes, job.options.access)
    entities = len({change.entity for change in changes})
    job.say(f"{options.bootstrap}: quotas of {entities - rejected:,} entities are set")
    if rejected:
        raise PipelineError(f"{options.bootstrap} rejected the quotas of {rejected:,} entities")


def _last_week(job: Job, options: Recommending, quotas: QuotaSet) -> tuple[Window, list[Effect]]:
    """Replay the last week of the events, or all if they are fewer; write `replay/`."""
    period = job.period()
    if period.end_ms is None or period.start_ms is None:
        week = period
    else:
        week = Window(max(period.end_ms - _WEEK_MS, period.start_ms), period.end_ms)
    events = _of_cluster(job.kept_events(), options)
    if week.start_ms is not None:
        events = events.where(F.col("interval_start_ms") >= week.start_ms)
    folder = write_table(with_period(replay(events, quotas), week), job.options.out, "replay")
    if untried(quotas):
        job.say(f"Not replayed, because events do not have the charges: {', '.join(untried(quotas))}", "bold")
    rows = job.spark.read.parquet(literal(folder)).select(*Effect._fields).collect()
    return week, [Effect(*row) for row in rows]
