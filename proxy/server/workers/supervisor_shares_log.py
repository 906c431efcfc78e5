"""SupervisorSharesLog: the log of reports by which the workers of one host share limits.

The supervisor has it instead of the topic of docs/sharing.md: all workers read the same records in the same
order, with the supervisor's clock.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from proxy.quota.sharing.members import LEASE_SECONDS
from proxy.server.workers.channel import Record

KEPT_MS: Final = round(2 * LEASE_SECONDS * 1000)
"""The age of the oldest record that a worker reads at its start. Those older than a lease have no effect."""


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class SupervisorSharesLog:
    """The records of the last seconds."""

    def __init__(self, now_ms: Callable[[], int] = _monotonic_ms) -> None:
        self._now_ms: Final = now_ms
        self._kept: Final[deque[Record]] = deque()
        self._end = 0

    def append(self, value: bytes) -> Record:
        """Add a report; the record that all workers get."""
        record = Record(self._end, self._now_ms(), value)
        self._end += 1
        self._kept.append(record)
        while self._kept[0].timestamp_ms < record.timestamp_ms - KEPT_MS:
            self._kept.popleft()
        return record

    def kept(self) -> list[Record]:
        """The records that a worker reads at its start."""
        return list(self._kept)
