"""SharesLog: what LimitSharing needs of the log of reports."""

from collections.abc import Callable
from typing import Protocol

from proxy.quota.sharing.reports import Report
from proxy.store.skipped_records import SkippedRecords


class SharesLog(Protocol):
    """The log of reports, which all processes read in the same order: a topic, or that of a supervisor."""

    @property
    def problem(self) -> str:
        """Why the log cannot be read or written at the moment; empty if it can."""

    @property
    def writable(self) -> bool:
        """Whether append() has an effect."""

    @property
    def skipped(self) -> SkippedRecords:
        """The records that are no reports."""

    async def run(self, see: Callable[[Report, int, int], None], begin_anew: Callable[[], None]) -> None:
        """Follow the log; never returns.

        see: takes each report with its offset and the log's timestamp in milliseconds.
        begin_anew: records are missing, or the offsets begin again.
        """

    def append(self, report: Report) -> None:
        """Write a report, without waiting for it."""

    async def close(self) -> None:
        """Write what was appended."""
