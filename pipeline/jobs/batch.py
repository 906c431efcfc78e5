"""The jobs that read events and write a table: a table of contents."""

from pathlib import Path

from pipeline.jobs.job import Job
from pipeline.prices import Prices
from pipeline.quota_file import QuotaSet, to_yaml
from pipeline.transforms.chargeback import chargeback
from pipeline.transforms.recommend import Rules, peaks, recommend
from pipeline.transforms.replay import replay
from pipeline.transforms.throttle import throttle
from pipeline.transforms.usage import partition_rates, usage


def write_usage(job: Job, by: str) -> None:
    """`usage/`: what each tenant did on each partition, by hour or day."""
    job.write("usage", usage(job.events(), by))


def write_throttle(job: Job) -> None:
    """`throttle/`: whom quotas made wait or refused, by hour."""
    job.write("throttle", throttle(job.events()))


def write_chargeback(job: Job, prices: Prices) -> None:
    """`chargeback/`: what each tenant pays."""
    job.write("chargeback", chargeback(job.events(), prices))


def write_replay(job: Job, quotas: QuotaSet) -> None:
    """`replay/`: what other quotas would have done."""
    job.write("replay", replay(job.events(), quotas))


def write_recommendation(job: Job, per: str, rules: Rules, current: QuotaSet | None) -> None:
    """`quotas.yaml`: a quota for each tenant."""
    found = [tuple(row) for row in peaks(job.events(), per).collect()]
    quotas = recommend(found, rules, {} if current is None else current.clients)
    file = Path(job.options.out) / "quotas.yaml"
    file.write_text(to_yaml(quotas), encoding="utf-8")
    job.console.print(f"{file}: quotas of {len(quotas):,} entities")
    job.report_quality()


def inbound_rates(job: Job) -> dict[tuple[str, int], float]:
    """Bytes/s that producers send to each partition."""
    rates = {(row.topic, row.partition): row.bytes_in_rate for row in partition_rates(job.events()).collect()}
    job.report_quality()
    return rates
