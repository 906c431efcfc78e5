"""Sharing: the part of each limit that this process may use, and its reports to the others.

All processes append reports to one log and read all of it. Each process computes its parts from the records
that it has read, by the same function as the others. So there is no leader, and no request waits for another
process.

    cold    No process uses more than a third of its part. Each has an equal part, and reports nothing.
    hot     A process uses more. The limit is divided by demand (waterfill), and each process reports its use
            every REPORT_SECONDS.

A process that is alone has the whole limits, and reports no use.

If a process stalls (SIGSTOP, a frozen virtual machine), its lease may end, and the others divide its parts.
When it continues, it uses nearly nothing until it has read a report that it has written since then. A process
that cannot reach the log keeps its parts; if it stalls meanwhile, it uses nearly nothing until it has run
for DEGRADED_SECONDS without reading a record. While no process can write, no part grows.
"""

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final, final

from proxy.quota.sharing.in_force import InForce
from proxy.quota.sharing.lately_used import LatelyUsed
from proxy.quota.sharing.members import LogClock, Members
from proxy.quota.sharing.reported_uses import LocalUse, ReportedUses
from proxy.quota.sharing.reports import SATURATED, BucketReport, Report, size_in_report
from proxy.quota.sharing.shared_bucket import SharedBucket
from proxy.quota.sharing.waterfill import RESERVE

REPORT_SECONDS: Final = 0.2
"""How often a process reports the use of hot buckets."""
HEARTBEAT_SECONDS: Final = 1.0
"""How often a process reports at least: its lease outlives the loss of one report (LEASE_SECONDS)."""
JOINING_REPORTS: Final = 20
"""The number of reports that a joining process sends at intervals of REPORT_SECONDS. The log's time advances
only with its records, and the process may have to wait for the end of a killed process's lease while no other
process writes.
"""
STALL_SECONDS: Final = 1.0
"""A process whose wake() was not called for this long has stalled. The lease is longer by more than the
time that a report takes to reach the others.
"""
DEGRADED_SECONDS: Final = 2.0
"""After this long without any record, not even one of this process, sharing is degraded."""
COLD_SECONDS: Final = 3.0
"""A bucket that no process has reported for this long is cold. With many hot buckets it takes longer, because
a process needs several reports for all of them.
"""
REPORTED_PER_SECOND: Final = 512 << 10
"""The bytes of buckets that a process reports in a second, at least."""
HOT_PART: Final = 1.0 / 3.0
"""A bucket is hot if a process uses more than this fraction of its part of the limit."""
_DEMAND_FACTOR: Final = 1.25
"""The demand of a bucket whose requests do not wait is this many times its use, so that the use can grow
before the next report.
"""


@final
class Sharing:
    """This process's view of the log.

    `now` is this process's monotonic clock; the log has its own time.
    """

    def __init__(self, instance: str, reported: int = 0, seen_at: float = 0.0) -> None:
        """Begin to read the log. Arguments of a process that has read it before:

        reported: how many reports it has sent. The others ignore a report with a smaller number.
        seen_at: when it last read a record.
        """
        self.instance: Final = instance
        self._clock: Final = LogClock()
        self._members: Final = Members()
        self._cold: Final = InForce()
        self._hot: Final[OrderedDict[str, SharedBucket]] = OrderedDict()
        """The bucket that was reported last is at the end."""
        self._hot_bytes = 0
        """Their size in reports. It follows from the log, so all processes have the same."""
        self._cooling: Final[dict[str, tuple[SharedBucket, int]]] = {}
        """Cold buckets, with the offset since which they are, until all processes have read that record."""
        self._lately: Final = LatelyUsed()
        self._changing: Final[dict[str, InForce]] = {}
        """The parts of the buckets of which some process may not have read the last one yet."""
        self._changes: Final[list[tuple[int, str]]] = []
        """A heap of the records that end a part of each of them."""
        self.grown = False
        """Set when a larger part of a bucket that this process has reported applies; the caller resets it."""
        self.joined_or_left = False
        """Set when the live processes change; the caller resets it."""
        self.freed = False
        """Set when a process stops using a limit that others wait for; the caller resets it. The others have
        its part when all have reported that they have read this.
        """
        self._read_to = 0
        self._read_by_all = 0
        """All live processes have read the records below this offset."""
        self._number = reported
        """The number of this process's last report."""
        self._first_number: Final = reported
        self._returned = reported
        """The number of this process's last report that was read from the log."""
        self.lost = 0
        """How often a report of this process was found lost: idle buckets have to be reported again, too."""
        self._reported: Final = ReportedUses()
        self._told_at = -HEARTBEAT_SECONDS
        """When this process last reported anything."""
        self._called_at = 0.0
        """When wake() was last called."""
        self._seen_at = seen_at
        """When report() was last called after a record was read, on this process's clock."""
        self._seen = False
        self._stalled_until = 0
        """The number of the report whose return ends a stall; 0 if there is none."""
        self._without_log_at = 0.0
        """If the process stalled while sharing was degraded: when it continued; otherwise 0.0."""
        self._news_to = 0
        """Others wait until this process has reported that it has read the records below this offset."""
        self._told_to = 0
        """The largest read_to that was reported."""
        self._newer = False
        """Whether a live process writes a newer format."""

    @property
    def instances(self) -> int:
        """The live processes, by the log."""
        return len(self._members)

    @property
    def reported(self) -> int:
        """How many reports the process has sent."""
        return self._number

    @property
    def more(self) -> bool:
        """Whether the last report() had no room for all that is to be said."""
        return self._reported.more

    @property
    def read_to(self) -> int:
        """All records below this offset were read."""
        return self._read_to

    def names(self) -> list[str]:
        """The names of the live processes, sorted."""
        return self._members.names()

    def newer(self) -> list[str]:
        """The live processes that write a newer format, so that their demands are unknown."""
        return self._members.newer()

    def ages(self) -> dict[str, float]:
        """Return the seconds since the last report of each live process, on the log's clock."""
        return self._members.ages(self._clock.now)

    def hot_keys(self) -> list[str]:
        """Return the keys of the hot buckets; the one that was reported last comes first."""
        return list(reversed(self._hot))

    def shares(self, key: str) -> tuple[float, dict[str, float]] | None:
        """Return the limit of a hot bucket, and the share of each live process; None if it is cold."""
        bucket = self._hot.get(key)
        return None if bucket is None else (bucket.limit, bucket.shares(self._members))

    @property
    def joined(self) -> bool:
        """Whether all live processes know this one."""
        return self._cold.least(self._read_by_all) > 0.0

    @property
    def stalled(self) -> bool:
        """Whether the process has stalled, and waits for a report of its own."""
        return self._stalled_until > 0

    @property
    def seen_at(self) -> float:
        """When report() was last called after a record was read."""
        return self._seen_at

    @property
    def lag_seconds(self) -> float:
        """For how long no record was read, as of the last report()."""
        return self._called_at - self._seen_at

    @property
    def degraded(self) -> bool:
        """Whether no record has been read for a while: this process or the log is cut off."""
        return self.lag_seconds > DEGRADED_SECONDS

    def see(self, report: Report, offset: int, timestamp_ms: int) -> None:
        """Take the record at `offset`. `timestamp_ms`: when the broker appended it."""
        now = self._clock.see(timestamp_ms)
        members = self._members
        self._read_to = offset + 1
        self._seen = True
        self._without_log_at = 0.0
        if members.repeated(report.instance, report.number):
            return
        if report.leaving:
            changed = members.leave(report.instance)
            gone = [report.instance]
        else:
            changed = members.see(report.instance, report.number, report.read_to, now, report.newer)
            gone = []
        gone += members.expire(now)
        if report.instance == self.instance:
            self._see_own(report.number)
        if len(members) > 1:
            self._lately.join(now)
        entries: list[BucketReport] = [] if self._alone else report.buckets
        stopped: list[SharedBucket] = []
        for entry in entries:
            bucket = self._heat(entry)
            if bucket.see(report.instance, entry, now):
                stopped.append(bucket)
        self._cool(offset, now)
        if changed or gone:
            self.joined_or_left = True
            self._reported.clear()
            self._divide_all(offset, gone)
        else:
            for entry in entries:
                self._divide(entry.key, offset)
        for bucket in stopped:
            self.freed = self.freed or bucket.short
        if changed or gone or entries:
            self._news_to = self._read_to
        self._newer = report.newer or (self._newer and len(members.newer()) > 0)
        self._set_read_by_all(members.read_by_all())

    def _divide(self, key: str, offset: int) -> None:
        """Divide the limit of a bucket; one that has cooled at this record has its equal part."""
        bucket = self._hot.get(key)
        if bucket is None:
            return
        bucket.divide(self._members, offset, self.instance, anew=False)
        self._note_change(key, bucket.in_force)

    def _note_change(self, key: str, in_force: InForce) -> None:
        if len(in_force) > 1 and key not in self._changing:
            self._changing[key] = in_force
            heappush(self._changes, (in_force.next_offset, key))

    def _set_read_by_all(self, offset: int) -> None:
        if offset == self._read_by_all:
            return
        self._read_by_all = offset
        changes = self._changes
        while changes and changes[0][0] < offset:
            _, key = heappop(changes)
            in_force = self._changing.pop(key)
            if in_force.grows(offset) and self._reported.has(key):
                self.grown = True
            self._note_change(key, in_force)
        for key in [key for key, (_, since) in self._cooling.items() if since < offset]:
            del self._cooling[key]

    def _see_own(self, number: int) -> None:
        """Note that a report of this process has been read from the log."""
        if number >= self._stalled_until:
            self._stalled_until = 0
        if number > self._returned + 1:
            # One before it was lost. What it said may not change again, so it is said once more.
            self._reported.clear()
            self.lost += 1
        self._returned = number

    def part(self, key: str, credit: bool = True) -> float:
        """The part of the bucket's limit that this process may use, above 0.0 and at most about 1.1.

        credit: whether the part may include credit. Kafka's rate needs none: what is not used for a while may
        be used during the rest of its window.
        """
        least = RESERVE / max(len(self._members), 1)
        if self._stalled_until > 0:
            return least
        bucket = self._hot.get(key)
        if bucket is None:
            cooling = self._cooling.get(key)
            in_force = self._cold if cooling is None else cooling[0].in_force
            return max(in_force.least(self._read_by_all), least)
        in_force, read_by_all = bucket.in_force, self._read_by_all
        if credit and not self.degraded:
            part = in_force.least(read_by_all)
        else:
            part = in_force.least_settled(read_by_all)
        if self._newer:
            # The demands of some processes are unknown.
            part = min(part, 1.0 / len(self._members))
        return max(part, least)

    def part_before(self, key: str) -> float:
        """The part of a limit that this process might have used during Kafka's window, if it has used none:
        nearly nothing if others may have used the whole limit.
        """
        if key in self._hot or self._lately.may_be(key, self._clock.now):
            return RESERVE / max(len(self._members), 1)
        return self.part(key, credit=False)

    def note_use(self, key: str, used: float) -> None:
        """Note what this process has used of a limit; it is in no report if the limit is cold."""
        rate = self._lately.rate(key)
        if rate is not None and used > 0.0:
            rate.record(used, self._clock.now)

    def over_seconds(self, key: str, limit: float) -> float:
        """For how long all processes together will be over the whole limit by Kafka's rate; 0.0 if they are
        not.
        """
        bucket = self._hot.get(key)
        rate = self._lately.rate(key) if bucket is None else bucket.rate
        if rate is None:
            return 0.0
        # The log's time stands still while no record arrives.
        return max(rate.throttle_seconds(limit, self._clock.now) - self.lag_seconds, 0.0)

    def owed_seconds(self, key: str, burst_seconds: float) -> float:
        """For how long all processes together will have used more than the limit and its burst; 0.0 if they
        have not.
        """
        bucket = self._hot.get(key)
        if bucket is None:
            return 0.0
        return max(bucket.owed_seconds(burst_seconds, self._clock.now) - self.lag_seconds, 0.0)

    def wake(self, now: float) -> None:
        """Note that the process runs. To be called before part(), which is small after a stall."""
        if self._number > self._first_number and now - self._called_at > STALL_SECONDS:
            self._without_log_at = now if self.degraded and not self._seen else 0.0
            self._stalled_until = self._number + 1
        elif self._without_log_at > 0.0 and now - self._without_log_at > DEGRADED_SECONDS:
            # The log is still away, so no process has taken the parts of this one.
            self._stalled_until = 0
            self._without_log_at = 0.0
        self._called_at = now

    def hot(self, use: LocalUse) -> bool:
        """Whether the others need to know the use of a bucket: not if this process is alone."""
        if self._alone:
            return False
        if use.waiting > 0 or use.key in self._hot:
            return True
        return use.rate > 0.0 and use.average > HOT_PART * self.part(use.key) * use.limit

    def knows_idle(self, key: str) -> bool:
        """Whether the others know that this process does not use a bucket."""
        return key not in self._hot or self._reported.idle(key)

    def report(
        self, uses: Iterable[LocalUse], now: float, leaving: bool = False, applied: int | None = None
    ) -> Report | None:
        """Return what to append to the log, or None. Call it every REPORT_SECONDS.

        uses: the hot buckets; none to send only what is due, such as a heartbeat.
        applied: the parts by the records below this offset are in use; None: by all that were read.
        """
        read_to = self._read_to if applied is None else applied
        self.wake(now)
        if self._seen or self._number == self._first_number:
            self._seen = False
            self._seen_at = now
        entries = self._reported.take([self._entry(use) for use in uses])
        news = self._told_to < self._news_to and self._told_to < read_to
        joins = self._number < self._first_number + JOINING_REPORTS and not self.joined
        due = now - self._told_at >= (REPORT_SECONDS if joins else HEARTBEAT_SECONDS) * 0.99
        if not (entries or news or leaving or due or self.stalled):
            return None
        self._told_to = max(self._told_to, read_to)
        self._told_at = now
        self._number += 1
        return Report(
            instance=self.instance,
            number=self._number,
            read_to=read_to,
            buckets=entries,
            leaving=leaving,
        )

    def _entry(self, use: LocalUse) -> BucketReport | None:
        """Return the report of a bucket if it is hot."""
        if not self.hot(use):
            return None
        # The others count the difference from the first report that they get of the bucket.
        return BucketReport(
            key=use.key,
            limit=use.limit,
            used=use.used if self._reported.has(use.key) else use.used_before,
            demand=SATURATED if use.waiting > 0 else use.rate * _DEMAND_FACTOR,
            waiting=use.waiting,
            debt=use.debt,
        )

    def _heat(self, entry: BucketReport) -> SharedBucket:
        """The hot bucket of a key; it becomes the one that was reported last."""
        bucket = self._hot.get(entry.key)
        if bucket is None:
            cooling = self._cooling.pop(entry.key, None)
            in_force = self._cold.copy() if cooling is None else cooling[0].in_force
            rate = self._lately.heat(entry.key)
            bucket = SharedBucket(entry.limit, in_force, self._clock.now, rate)
            self._hot[entry.key] = bucket
            self._hot_bytes += size_in_report(entry.key)
        else:
            self._hot.move_to_end(entry.key)
        return bucket

    def _cool(self, offset: int, now: float) -> None:
        """Take the buckets that no process reports any more from the hot ones.

        If this process is alone, it takes all: credit would be part of its share for as long as they are hot.
        """
        equal = self._equal_part()
        self._lately.forget(now)
        while self._hot:
            key = next(iter(self._hot))
            bucket = self._hot[key]
            cold = COLD_SECONDS + self._hot_bytes / REPORTED_PER_SECOND
            if now - bucket.reported_at <= cold and not self._alone:
                break
            del self._hot[key]
            self._hot_bytes -= size_in_report(key)
            self._lately.cool(key, bucket.rate, now)
            self._reported.forget(key)
            bucket.in_force.take(offset, equal, equal)
            self._cooling[key] = (bucket, offset)

    def _divide_all(self, offset: int, gone: list[str]) -> None:
        """Divide every limit among the live processes, which have changed."""
        equal = self._equal_part()
        self._cold.take(offset, equal, equal)
        for bucket, _ in self._cooling.values():
            bucket.in_force.take(offset, equal, equal)
        for key, bucket in self._hot.items():
            for instance in gone:
                bucket.forget(instance)
            bucket.divide(self._members, offset, self.instance, anew=True)
            self._note_change(key, bucket.in_force)

    @property
    def _alone(self) -> bool:
        return len(self._members) == 1 and self.instance in self._members

    def _equal_part(self) -> float:
        return 1.0 / len(self._members) if self.instance in self._members else 0.0
