"""The job that writes the report and its tables."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import DataFrame

from pipeline.inputs.prices import Prices
from pipeline.inputs.quota_file import QuotaSet
from pipeline.inputs.tenants import NOBODY, Directory
from pipeline.jobs import report_figures as collect
from pipeline.jobs.comparison import before, read_uses, utc
from pipeline.jobs.invoice_files import INDEX, InvoiceFiles
from pipeline.jobs.job import Job
from pipeline.lake.history import History
from pipeline.report.charts import COLORS
from pipeline.report.figures import Figures, Invoice, Key, Use
from pipeline.report.invoice_page import Billing
from pipeline.report.page import INVOICES, SHOWN, render
from pipeline.storage.csv_files import write_csv
from pipeline.storage.filesystem import literal
from pipeline.storage.tables import write_table
from pipeline.transforms.chargeback import chargeback
from pipeline.transforms.headroom import headroom
from pipeline.transforms.invoices import invoices
from pipeline.transforms.throttle import throttle
from pipeline.transforms.usage import usage


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Optional parts of the report. `previous`: the folder of the report of the period before; None: that
    period comes from the events. `files`: whether each invoice is also a file of its own.
    """

    prices: Prices | None = None
    quotas: QuotaSet | None = None
    tenants: Directory | None = None
    previous: str | None = None
    files: bool = True


def write_report(job: Job, options: ReportOptions) -> None:
    """Write `report.html`, and its tables as Parquet and CSV."""
    prices, quotas = options.prices, options.quotas
    for name in _tables(options):
        job.claim(name)
    # First, because a folder of --previous without a bill fails the job.
    earlier = before(job, prices, options.previous)
    events = job.kept_events()
    hours = _keep_by_date(job, "usage", usage(events))
    waits = _keep_by_date(job, "throttle", throttle(events))
    limits = None if quotas is None else _keep(job, "headroom", headroom(events, quotas))
    tenants = collect.tenant_uses(hours)
    several = len({cluster for cluster, *_ in {**tenants, **(earlier.uses if earlier else {})}}) > 1
    topics, topic_count = collect.topics(hours, SHOWN)
    throttled, rejected = collect.quota_hours(waits, "throttle_ms", "rejected_requests")
    figures = Figures(
        clusters=sorted({cluster for cluster, *_ in tenants}),
        hours=collect.hours(hours, list(tenants)[: len(COLORS)], several=several),
        tenants=tenants,
        several=several,
        topics=topics,
        topic_count=topic_count,
        bound=collect.bound(waits, several=several),
        throttle_hours=throttled,
        rejected_hours=rejected,
        headroom=[] if limits is None else collect.headrooms(limits, several=several),
        before=earlier,
        period=_period(job),
    )
    if prices is not None:
        bill = _keep(job, "chargeback", chargeback(events, prices))
        figures = _with_bill(job, figures, bill, prices, options)
    quality = job.report_quality()
    figures = replace(
        figures,
        has_cost_centers=options.tenants is not None,
        bad_events=quality.bad,
        contradicting=quality.contradicting,
    )
    file = job.write_text("report.html", render(figures))
    job.say(f"{file}: open it in a browser, or print it")


def _tables(options: ReportOptions) -> list[str]:
    limits = [] if options.quotas is None else ["headroom"]
    bill = [] if options.prices is None else ["chargeback", "invoices"]
    return ["usage", "throttle", *limits, *bill]


def _with_bill(
    job: Job, figures: Figures, bill: DataFrame, prices: Prices, options: ReportOptions
) -> Figures:
    """Write `invoices/` and the files of invoices, and add what each tenant pays."""
    directory = options.tenants or Directory()
    uses = read_uses(bill)
    lines = _keep(job, "invoices", invoices(bill, _owners(job, uses, directory), prices))
    earlier, several = figures.before, figures.several
    every = collect.invoices(uses, lines, directory, earlier, several=several)
    made = _largest(_with_files(job, figures, prices.currency, every) if options.files else every, uses)
    return replace(
        figures,
        # In their order, which is that of bytes.
        tenants={tenant: uses.get(tenant, use) for tenant, use in figures.tenants.items()},
        charges=collect.charges(uses, made, directory, several=several),
        invoices=made,
        currency=prices.currency,
    )


def _with_files(job: Job, figures: Figures, currency: str, every: Iterable[Invoice]) -> Iterator[Invoice]:
    """Yield the invoices, and write the file of each."""
    earlier = figures.before
    billing = Billing(
        currency,
        figures.period,
        None if earlier is None else earlier.period,
        billed=earlier is not None and earlier.billed,
    )
    with InvoiceFiles(job.spark, job.options.out, billing, job.period()) as files:
        for invoice in every:
            files.add(invoice)
            yield invoice
    job.say(f"{files.folder}: a file for each invoice; {INDEX} lists them")


def _largest(every: Iterable[Invoice], uses: Mapping[Key, Use]) -> list[Invoice]:
    """Return the invoices of the tenants that pay the most, for the page."""
    shown = collect.largest(uses, INVOICES)
    return collect.in_order(each for each in every if (each.cluster, each.user, each.client_id) in shown)


def _owners(job: Job, uses: Mapping[Key, Use], directory: Directory) -> DataFrame:
    """The tenants of the file of --tenants, with their names and cost centers."""
    found = {tenant: directory.find(*tenant) for tenant in uses}
    unknown = [tenant for tenant, entry in found.items() if not entry.cost_center]
    if directory.entries and unknown:
        some = ", ".join(collect.label(tenant, several=True) for tenant in unknown[:5])
        more = ", ..." if len(unknown) > 5 else ""
        job.say(f"{len(unknown):,} tenants have no cost center in --tenants: {some}{more}", "bold")
    rows = [
        (*tenant, entry.name or None, entry.cost_center or None)
        for tenant, entry in found.items()
        if entry is not NOBODY
    ]
    columns = (*collect.TENANT, "name", "cost_center")
    return job.spark.createDataFrame(rows, ", ".join(f"{name} string" for name in columns))


def _keep(job: Job, name: str, table: DataFrame) -> DataFrame:
    """Write the table as Parquet and CSV, and read it back, so that it is not computed again."""
    job.lake.check(name)
    with job.with_period(name, table) as rows:
        folder = write_table(rows, job.options.out, name)
        schema = rows.schema
    # With the schema, Spark reads no file to find it.
    written = job.spark.read.schema(schema).parquet(literal(folder))
    write_csv(written, f"{folder}.csv")
    return written


def _keep_by_date(job: Job, name: str, table: DataFrame) -> DataFrame:
    """Likewise, for a table that has an `hour`; the CSV file has the rows of this report only."""
    job.lake.check(name)
    with job.with_period(name, table) as rows:
        written = History(rows, job.options.out, name, job.options.window).write()
        columns = rows.columns
    found = written.rows.select(*columns)
    write_csv(found, f"{written.folder}.csv")
    return found


def _period(job: Job) -> tuple[datetime, datetime] | None:
    """The period of the tables; None if an end is unknown, for want of events."""
    period = job.period()
    if period.start_ms is None or period.end_ms is None:
        return None
    return utc(period.start_ms / 1000), utc(period.end_ms / 1000)
