"""A worker's view of the supervisor's log."""

import asyncio

from proxy.quota.sharing.reports import BucketReport, Report
from proxy.server.workers.channel import Record
from proxy.server.workers.worker_shares_log import AT_ONCE, WorkerSharesLog
from proxy.store.sharing.share_records import encode_report
from proxy.tasks import Tasks


def report(number: int) -> Report:
    return Report(instance="a/1", number=number, read_to=0, buckets=[])


async def seen(*records: Record) -> tuple[list[object], WorkerSharesLog]:
    """What the log hands over for these records; "anew" where it begins anew."""
    shares = WorkerSharesLog(lambda value: None)
    found: list[object] = []
    for record in records:
        shares.take(record)
    following = Tasks().start(
        shares.run(
            lambda report, offset, ms: found.append((report.number, offset, ms)), lambda: found.append("anew")
        )
    )
    await asyncio.sleep(0)
    following.cancel()
    return found, shares


async def test_records_are_handed_over_and_a_gap_begins_anew() -> None:
    records = [Record(offset, 10 * offset, encode_report(report(offset))) for offset in (4, 5, 9)]
    found, _ = await seen(*records)
    assert found == [(4, 4, 40), (5, 5, 50), "anew", (9, 9, 90)]


async def test_other_work_runs_after_a_long_report() -> None:
    bucket = BucketReport(key="k", limit=1.0, used=1.0, demand=1.0, waiting=0)
    long = Report(instance="a/1", number=1, read_to=0, buckets=[bucket] * (AT_ONCE + 1))
    found, _ = await seen(*[Record(offset, offset, encode_report(long)) for offset in range(3)])
    assert len(found) == 1, "one turn of the event loop"


async def test_what_is_no_report_is_skipped() -> None:
    found, shares = await seen(Record(0, 0, b"?"), Record(1, 1, encode_report(report(7))))
    assert found == [(7, 1, 1)]
    assert shares.skipped.warning


async def test_reports_are_appended_as_records() -> None:
    sent: list[bytes] = []
    shares = WorkerSharesLog(sent.append)
    shares.append(report(2))
    assert sent == [encode_report(report(2))]
    await shares.close()
