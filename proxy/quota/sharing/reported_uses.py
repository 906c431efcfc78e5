"""ReportedUses: what the other processes know of this process's use of buckets, from its own reports."""

from typing import Final, final

from proxy.quota.sharing.reports import BucketReport, size_in_report

REPORT_BYTES: Final = 64 << 10
"""The approximate maximum size of a report's buckets. Each process reads a report in one turn of its event
loop, in a millisecond or two, and clients may make up thousands of client ids.
"""
_LEAST_CHANGE: Final = 0.05
"""A demand is reported again when it has changed by more than this part of it."""


@final
class LocalUse:
    """The use of a bucket by this process.

    used: the sum of all uses so far, less the debt.
    used_before: the same as of the look before; by default, there was no use since then.
    rate: per second, since the last look at the bucket.
    average: per second, over the last few seconds.
    waiting: the connections whose requests wait.
    debt: BucketReport.debt.
    """

    __slots__ = ("average", "debt", "key", "limit", "rate", "used", "used_before", "waiting")

    def __init__(
        self,
        *,
        key: str,
        limit: float,
        used: float,
        rate: float,
        average: float,
        waiting: int,
        used_before: float | None = None,
        debt: float = 0.0,
    ) -> None:
        self.key: Final = key
        self.limit: Final = limit
        self.used: Final = used
        self.used_before: Final = used if used_before is None else used_before
        self.rate: Final = rate
        self.average: Final = average
        self.waiting: Final = waiting
        self.debt: Final = debt


@final
class ReportedUses:
    """The last report of each bucket by this process, since it last had to report all of them."""

    def __init__(self) -> None:
        self._last: Final[dict[str, BucketReport]] = {}
        self._first = 0
        """The place of the first bucket that did not fit in the last report."""

    @property
    def more(self) -> bool:
        """Whether the last take() had no room for all buckets."""
        return self._first > 0

    def has(self, key: str) -> bool:
        """Whether a bucket has been reported."""
        return key in self._last

    def idle(self, key: str) -> bool:
        """Whether a bucket has been reported as unused."""
        last = self._last.get(key)
        return last is not None and last.demand == 0.0

    def forget(self, key: str) -> None:
        """Report a bucket as a new one from now on."""
        self._last.pop(key, None)

    def clear(self) -> None:
        """Report every bucket again."""
        self._last.clear()

    def take(self, uses: list[BucketReport | None]) -> list[BucketReport]:
        """Return those of the uses that the others do not know, as far as they fit in a record. The next call
        begins with the rest. None stands for a bucket that is not to be reported.
        """
        if not uses:
            return []
        first = self._first if self._first < len(uses) else 0
        self._first = 0
        taken: list[BucketReport] = []
        size = 0
        for place in range(len(uses)):
            index = (first + place) % len(uses)
            use = uses[index]
            if use is None:
                continue
            last = self._last.get(use.key)
            if last is not None and not _differs(use, last):
                continue
            size += size_in_report(use.key)
            if size > REPORT_BYTES and taken:
                self._first = index
                break
            self._last[use.key] = use
            taken.append(use)
        return taken


def _differs(use: BucketReport, last: BucketReport) -> bool:
    """Whether the others need to know of a use."""
    if use.used != last.used or use.limit != last.limit:
        return True
    if use.waiting != last.waiting or use.debt != last.debt:
        return True
    if use.demand == last.demand:
        return False
    return abs(use.demand - last.demand) > _LEAST_CHANGE * max(last.demand, use.demand)
