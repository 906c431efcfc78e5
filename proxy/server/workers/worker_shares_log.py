"""WorkerSharesLog: a worker's view of the log by which the workers of one host share limits.

It has the interface of SharesLog, as SharesTopic has.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from proxy.quota.sharing.reports import Report
from proxy.server.workers.channel import Record
from proxy.store.quota_records import Unreadable
from proxy.store.sharing.share_records import decode_report, encode_report
from proxy.store.skipped_records import SkippedRecords

AT_ONCE: Final = 100
"""After a report of more buckets than this, the event loop gets a turn."""


class WorkerSharesLog:
    """run() follows the log; append() writes to it."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        """`send` appends a record's value to the supervisor's log."""
        self.problem = ""
        """Why the log cannot be read: never, for a worker ends with its supervisor."""
        self.writable: Final = True
        self.skipped: Final = SkippedRecords("of the supervisor", "sharing", "restart the proxy")
        self._send: Final = send
        self._records: Final[asyncio.Queue[Record]] = asyncio.Queue()
        self._next: int | None = None
        """The offset of the next record; None before the first."""

    def take(self, record: Record) -> None:
        """Take a record from the supervisor."""
        self._records.put_nowait(record)

    async def run(self, see: Callable[[Report, int, int], None], begin_anew: Callable[[], None]) -> None:
        """Hand over each record, and begin anew after a gap, as a worker finds it that was suspended. Never
        returns.
        """
        while True:
            record = await self._records.get()
            if self._next is not None and record.offset != self._next:
                begin_anew()
            self._next = record.offset + 1
            try:
                report = decode_report(record.value)
            except Unreadable as error:
                self.skipped.skip(None, record.offset, str(error))
            else:
                see(report, record.offset, record.timestamp_ms)
                if len(report.buckets) > AT_ONCE:
                    await asyncio.sleep(0)

    def append(self, report: Report) -> None:
        """Write a report, without waiting for it."""
        self._send(encode_report(report))

    async def close(self) -> None:
        """Do nothing, because no report waits to be written."""
