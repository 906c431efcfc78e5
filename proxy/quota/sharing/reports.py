"""Report and BucketReport: what a process reports to the others, several times a second."""

import math
from typing import Final, final

SATURATED: Final = math.inf
"""The demand of a bucket whose requests wait: it can use any share."""

MAX_NAME: Final = 1000
"""Characters of the name of an instance or a cluster, and of a bucket's key."""
MAX_WAITING: Final = 1 << 31
"""More connections than any process has."""
_NUMBERS_BYTES: Final = 100
"""The size of a bucket's numbers in a report, in bytes."""


@final
class BucketReport:
    """The use of one bucket by one process.

    key: names the bucket, the same in all processes.
    limit: the whole limit, per second.
    used: the sum of all uses since the process began.
    demand: per second, what the process could use now; SATURATED if requests wait.
    waiting: the connections whose requests wait; 0 if none does.
    debt: what is owed besides `used`, if waits are bounded, so that nobody waits until it is paid; otherwise
    0.0.
    """

    __slots__ = ("debt", "demand", "key", "limit", "used", "waiting")

    def __init__(
        self, *, key: str, limit: float, used: float, demand: float, waiting: int, debt: float = 0.0
    ) -> None:
        self.key: Final = key
        self.limit: Final = limit
        self.used: Final = used
        self.demand: Final = demand
        self.waiting: Final = waiting
        self.debt: Final = debt


def bucket_reports(
    rows: list[tuple[str, float, float, float | None, int]], debts: list[tuple[int, float]]
) -> list[BucketReport]:
    """Reports from key, limit, sum of uses, demand (None: all it can get) and waiting connections.

    debts: the index of a row, and what is owed.

    Raises ValueError with the key of a bucket that has a number out of range.
    """
    owed = [0.0] * len(rows)
    for index, debt in debts:
        if not (0 <= index < len(rows) and 0.0 <= debt < math.inf):
            raise ValueError(f"number {index}")
        owed[index] = debt
    reports: list[BucketReport] = []
    for (key, limit, used, demand, waiting), debt in zip(rows, owed, strict=True):
        wanted = SATURATED if demand is None else demand
        numbers = 0.0 < limit < math.inf and abs(used) < math.inf and 0 <= waiting < MAX_WAITING
        possible = demand is None or 0.0 <= demand < math.inf
        if not (0 < len(key) <= MAX_NAME and numbers and possible):
            raise ValueError(key[:100])
        reports.append(
            BucketReport(key=key, limit=limit, used=used, demand=wanted, waiting=waiting, debt=debt)
        )
    return reports


@final
class Report:
    """One record of the log.

    instance: the sender's name; a process has a new name after each start.
    number: counts the sender's reports from 1.
    read_to: the sender has read all records of the log below this offset.
    buckets: the buckets whose use has changed. A report without buckets is a heartbeat.
    leaving: whether the sender stops, so that the others divide its share at once.
    newer: whether it is in a newer format, of which only the fields above but `buckets` can be read.
    """

    __slots__ = ("buckets", "instance", "leaving", "newer", "number", "read_to")

    def __init__(
        self,
        *,
        instance: str,
        number: int,
        read_to: int,
        buckets: list[BucketReport],
        leaving: bool = False,
        newer: bool = False,
    ) -> None:
        self.instance: Final = instance
        self.number: Final = number
        self.read_to: Final = read_to
        self.buckets: Final = buckets
        self.leaving: Final = leaving
        self.newer: Final = newer


def size_in_report(key: str) -> int:
    """The size of a bucket in a report, in bytes."""
    return len(key.encode()) + _NUMBERS_BYTES
