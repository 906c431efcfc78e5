"""The jobs that read events and write one table."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.errors import InputError
from pipeline.inputs.prices import Prices
from pipeline.inputs.quota_file import QuotaSet
from pipeline.jobs.job import Job
from pipeline.storage.observed import Observed
from pipeline.storage.tables import EVENTS_TABLE, events_folder, is_streamed, mark_ingested
from pipeline.transforms import tenants, throttle
from pipeline.transforms.chargeback import bill
from pipeline.transforms.events import with_date
from pipeline.transforms.hours import DAY, HOURS_PER_DAY, SUMS
from pipeline.transforms.usage import partition_rates, with_shares


def append(job: Job, *, compact: bool = False) -> None:
    """Write `events/`: append the events that it lacks. A second run with the same events adds nothing."""
    job.claim(EVENTS_TABLE)
    if is_streamed(job.spark, job.options.out):
        folder = events_folder(job.options.out)
        raise InputError(f"a stream writes {folder}; use --stream, or another --out")
    events = job.events(known=job.lake.read(EVENTS_TABLE))
    added = Observed(with_date(events), rows=F.count(F.lit(1)))
    place = job.lake.append(added.table, EVENTS_TABLE)
    mark_ingested(job.spark, job.options.out)
    job.say(f"{place}: {added.get()['rows']:,} events added")
    if compact:
        job.lake.compact(EVENTS_TABLE)
    job.report_quality(add=True)


def write_usage(job: Job, by: str) -> None:
    """Write `usage/`: the usage of each tenant on each partition, by hour or day."""
    job.claim("usage")
    job.warn_of_parts(HOURS_PER_DAY if by == DAY else 1)
    job.write_by_date("usage", with_shares(job.sums(SUMS[by])), whole_days=by == DAY)


def write_throttle(job: Job) -> None:
    """Write `throttle/`: the throttling and rejections of each tenant, by hour."""
    job.claim("throttle")
    job.warn_of_parts()
    job.write_by_date("throttle", throttle.added(job.sums(throttle.SUMS, throttle.bound)))


def write_chargeback(job: Job, prices: Prices) -> None:
    """Write `chargeback/`: the cost of each tenant."""
    job.claim("chargeback")
    job.warn_of_parts()
    job.write("chargeback", bill(tenants.added(job.sums(tenants.SUMS)), prices))


def write_replay(job: Job, quotas: QuotaSet) -> None:
    """Write `replay/`: the effect of other quotas."""
    # It imports pandas, which commands otherwise import while Java starts.
    from pipeline.transforms.replay.replay import replay, untried

    job.claim("replay")
    place = job.write("replay", replay(job.kept_events(), quotas))
    written = job.lake.read("replay")
    assert written is not None
    if untried(quotas):
        job.say(f"Not replayed, because events do not have the charges: {', '.join(untried(quotas))}", "bold")
    unknown = written.where(F.col("after_throttle_ms").isNull())
    found = sorted(row.quota or "an unnamed quota" for row in unknown.select("quota").distinct().collect())
    if found:
        job.say(f"Not replayed, and null in the after_ columns of {place}: {', '.join(found)}", "bold")


def inbound_rates(job: Job, cluster: str | None = None) -> dict[tuple[str, int], float]:
    """Return the bytes/s that producers send to each partition of the cluster. Raises InputError if `cluster`
    is None and the events are of several clusters, or if all events are of other clusters.
    """
    events = job.events()
    rows = partition_rates(events).collect()
    job.report_quality()
    found = sorted({row.cluster for row in rows})
    if cluster is None and len(found) > 1:
        raise InputError(f"--events has the clusters {', '.join(found)}; choose one with --events-cluster")
    if cluster is not None and cluster not in found:
        check_cluster(events, cluster)
        job.say(f"Producers sent nothing to the cluster {cluster}, so its inbound rates are unknown", "bold")
    return {(row.topic, row.partition): row.bytes_in_rate for row in rows if cluster in (None, row.cluster)}


def check_cluster(events: DataFrame, cluster: str) -> None:
    """Raise InputError if there are events, but none of the cluster: its name is probably misspelled."""
    found = sorted(row.cluster for row in events.select("cluster").distinct().collect())
    if found and cluster not in found:
        raise InputError(
            f"--events has no events of the cluster {cluster} of --events-cluster; it has those of "
            f"{', '.join(found)}"
        )
