"""LocalUses: reports the use of this process's buckets, and sets their parts of their limits."""

import math
from typing import Final, final

from proxy.quota.client_ids import represented
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.sharing.reported_uses import LocalUse
from proxy.quota.sharing.sharing import Sharing
from proxy.quota.sharing.waiting import WaitingConnections

AVERAGE_SECONDS: Final = 3.0
"""The time over which use is averaged to find out whether it needs more than a part of the limit. A single
request of a client that seldom sends does not, however large the rate is between two looks.
"""
_NOTHING: Final = 0.001
"""An average below this part of the limit counts as none: it takes hours to be zero."""


@final
class _Known:
    """What is known of a bucket as of the last look at it."""

    __slots__ = (
        "_muted",
        "average",
        "idle",
        "key",
        "looked_at",
        "paid",
        "throttle_seconds",
        "throttled",
        "used",
        "waiting",
    )

    def __init__(self, key: str, paid: float, now: float) -> None:
        self.key: Final = key
        self.used = 0.0
        """Bucket.used."""
        self.paid = paid
        """Bucket.used without the debt."""
        self.idle = False
        """Whether it had no use and no waiting connection, and the others know that."""
        self.throttled = 0
        """Bucket.throttled_requests."""
        self.throttle_seconds = 0.0
        """Bucket.throttle_seconds."""
        self._muted = 0.0
        """The connections that wait, averaged over AVERAGE_SECONDS."""
        self.waiting: WaitingConnections | None = None
        """None before any connection waited."""
        self.looked_at = now
        self.average = 0.0
        """The use per second, averaged over AVERAGE_SECONDS, as of the last look."""

    def _muted_on_average(self, bucket: Bucket, now: float) -> int:
        """The mean number of connections that wait, at least 1: the seconds of waits that began in one."""
        elapsed = max(now - self.looked_at, 0.0)
        seconds = max(bucket.throttle_seconds - self.throttle_seconds, 0.0)
        self._muted *= math.exp(-elapsed / AVERAGE_SECONDS)
        self._muted += seconds / (AVERAGE_SECONDS + elapsed)
        self.throttle_seconds = bucket.throttle_seconds
        return max(int(self._muted + 0.5), 1)

    def use(self, used: float, began: float, now: float) -> float:
        """Take a use since the last look, or since `began` if there was none before; return the rate."""
        elapsed = max(now - max(self.looked_at, began), 1e-3)
        before = self.average * math.exp(min(self.looked_at - now, 0.0) / AVERAGE_SECONDS)
        self.average = before + used / (AVERAGE_SECONDS + elapsed)
        self.looked_at = now
        return used / elapsed

    def demand(self, bucket: Bucket, rate: float, now: float) -> float:
        """The rate that a bucket needs, from the rate of its use since the last look."""
        if bucket.growth > 0.0:
            rate = max(rate, self.average) * bucket.growth
        if bucket.averaged:
            # Requests are rejected by the average, so it is the demand, not what a rejection leaves of it.
            rate = bucket.measure(now)
            if rate < _NOTHING * bucket.whole_limit:
                rate = 0.0
            self.average = rate
        return rate

    def connections(self, bucket: Bucket, bounded: bool, now: float) -> int:
        """How many connections count as waiting for a bucket. To be called before use().

        bounded: waits of this bucket are not divided among connections, so it does not know how many wait.
        """
        waiting = bucket.waiting(now)
        if waiting == 0 and bucket.throttled_requests > self.throttled and not bucket.closed(now):
            # A short wait has begun and ended since the last look.
            waiting = 1
        self.throttled = bucket.throttled_requests
        if bounded:
            muted = self._muted_on_average(bucket, now)
            waiting = muted if waiting > 0 else 0
        if self.waiting is None:
            if waiting == 0:
                return 0
            self.waiting = WaitingConnections()
        self.waiting.see(waiting, now)
        return self.waiting.count


@final
class LocalUses:
    """Looks at the live buckets, several times a second: begin(), look() for some at a time, end()."""

    def __init__(self) -> None:
        self._known: dict[Bucket, _Known] = {}
        """The buckets as of the last complete pass."""
        self._found: dict[Bucket, _Known] = {}
        """The buckets as of this pass."""
        self._uses: list[LocalUse] = []
        self._used: list[Bucket] = []
        """The buckets of `_uses`."""
        self._sharing: Sharing | None = None
        self._lost = 0
        """`Sharing.lost`, as of this pass."""
        self._again = False
        """Whether this pass looks at idle buckets, too."""
        self._began = 0.0
        self._last_began = 0.0

    def begin(self, now: float) -> None:
        """Begin a pass over all live buckets."""
        self._found = {}
        self._uses = []
        self._used = []
        self._again = False
        self._last_began = self._began
        self._began = now

    def look(self, node_id: int, buckets: list[Bucket], sharing: Sharing, now: float, divide: bool) -> None:
        """Look at live buckets of a broker; with `divide`, give each its part of the limit.

        Observed buckets are not shared. Buckets that are still idle take little time: clients may make up
        100,000 client ids.
        """
        if sharing is not self._sharing or sharing.lost != self._lost:
            self._sharing = sharing
            self._lost = sharing.lost
            self._again = True
        for bucket in buckets:
            if not _shared(bucket):
                continue
            entry = self._known.get(bucket)
            if entry is None or not entry.idle or entry.used != bucket.used or self._again:
                entry = self._look_at(bucket, entry, node_id, sharing, now)
            self._found[bucket] = entry
            if divide:
                _divide(bucket, entry.key, sharing, now)

    def _look_at(
        self, bucket: Bucket, entry: _Known | None, node_id: int, sharing: Sharing, now: float
    ) -> _Known:
        debt = bucket.debt(now)
        paid = bucket.used - debt
        if entry is None:
            entry = _Known(bucket_key(node_id, bucket), paid, now)
            entry.throttled = bucket.throttled_requests
            entry.throttle_seconds = bucket.throttle_seconds
            before = 0.0
        else:
            before = entry.paid
        bounded = bucket.rule.max_throttle_seconds <= AVERAGE_SECONDS
        waiting = entry.connections(bucket, bounded, now)
        # An idle bucket was not looked at in the last pass, but then it had no use.
        used = max(paid - entry.paid, 0.0)
        rate = entry.use(used, self._last_began, now)
        if bucket.windowed:
            sharing.note_use(entry.key, used)
        rate = entry.demand(bucket, rate, now)
        entry.paid = paid
        entry.used = bucket.used
        entry.idle = rate == 0.0 and waiting == 0 and sharing.knows_idle(entry.key)
        use = LocalUse(
            key=entry.key,
            limit=bucket.whole_limit,
            used=paid,
            used_before=min(before, paid),
            rate=rate,
            average=entry.average,
            waiting=waiting,
            debt=debt if bounded else 0.0,
        )
        if sharing.hot(use):
            self._uses.append(use)
            self._used.append(bucket)
        return entry

    def end(self) -> list[LocalUse]:
        """End the pass; return the uses of the hot buckets."""
        self._known = self._found
        return self._uses

    def divide(self, sharing: Sharing, now: float) -> None:
        """Give the hot buckets of the last pass their parts, before the next one."""
        for use, bucket in zip(self._uses, self._used, strict=True):
            if _shared(bucket):
                _divide(bucket, use.key, sharing, now)


def _divide(bucket: Bucket, key: str, sharing: Sharing, now: float) -> None:
    """Give a bucket its part."""
    if bucket.windowed:
        bucket.share(sharing.part(key, credit=False), now)
        bucket.close(sharing.over_seconds(key, bucket.whole_limit), now)
    else:
        bucket.share(sharing.part(key), now)
        if bucket.rule.max_throttle_seconds <= AVERAGE_SECONDS:
            # A connection waits as long as with one process, although what others owe is not owed here.
            bucket.close(sharing.owed_seconds(key, bucket.rule.burst_seconds), now)


def hold(buckets: list[Bucket], part: float, now: float) -> None:
    """Let each bucket use at most this part of its limit."""
    for bucket in buckets:
        if _shared(bucket) and bucket.limit > bucket.whole_limit * part:
            bucket.share(part, now)


def _shared(bucket: Bucket) -> bool:
    return not bucket.observed and 0.0 < bucket.whole_limit < UNLIMITED


def bucket_key(node_id: int, bucket: Bucket) -> str:
    """Return the key of a bucket, the same in all processes. A name may contain any character, so the key has
    the lengths of the names. A long user name is represented by a digest, as a long client id is.
    """
    names = (bucket.quota, represented(bucket.user), bucket.client_id, bucket.ip, bucket.topic)
    text = "".join([f"{len(name)}:{name}" for name in names])
    return f"{text}{bucket.partition}/{node_id}"
