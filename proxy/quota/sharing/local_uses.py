"""LocalUses: reports the use of this process's buckets, and sets their parts of their limits."""

from typing import Final, final

from proxy.quota.client_ids import represented
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.sharing.sharing import LocalUse, Sharing

WAITED_SECONDS: Final = 1.0
"""A connection counts as waiting for this long after a wait, because it is about to send its next request,
which will wait too. A real producer may need most of a second for that on a busy machine; demand that moves
to another process has its limit there only after this time.
"""


_NOTHING: Final = 0.001
"""An average below this part of the limit counts as none: it takes hours to be zero."""


@final
class _Known:
    """A bucket as of the last look at it."""

    __slots__ = ("idle", "key", "looked_at", "most_at", "paid", "used", "waited_at", "waiting")

    def __init__(self, key: str, paid: float, now: float) -> None:
        self.key: Final = key
        self.used = 0.0
        """Bucket.used."""
        self.paid = paid
        """Bucket.used without the debt."""
        self.idle = False
        """Whether it had no use and no waiting connection, and the others know that."""
        self.waiting = 0
        self.most_at = 0.0
        """When so many connections waited."""
        self.waited_at = 0.0
        """When any connection waited."""
        self.looked_at = now

    def wait(self, waiting: int, now: float) -> None:
        """Take the number of connections that wait now."""
        if waiting > 0:
            self.waited_at = now
            if waiting >= self.waiting or now - self.most_at > WAITED_SECONDS:
                self.waiting = waiting
                self.most_at = now
        elif now - self.waited_at > WAITED_SECONDS:
            self.waiting = 0


@final
class LocalUses:
    """Looks at the live buckets, several times a second: begin(), look() for some at a time, end()."""

    def __init__(self) -> None:
        self._known: dict[Bucket, _Known] = {}
        """The buckets as of the last complete pass."""
        self._found: dict[Bucket, _Known] = {}
        """The buckets as of this pass."""
        self._uses: list[LocalUse] = []
        self._sharing: Sharing | None = None
        self._lost = 0
        """Of `_sharing`, as of this pass."""
        self._again = False
        """Whether this pass looks at idle buckets, too."""
        self._began = 0.0
        self._last_began = 0.0

    def begin(self, now: float) -> None:
        """Begin a pass over all live buckets."""
        self._found = {}
        self._uses = []
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
                bucket.share(sharing.part(entry.key), now)

    def _look_at(
        self, bucket: Bucket, entry: _Known | None, node_id: int, sharing: Sharing, now: float
    ) -> _Known:
        paid = bucket.used - bucket.debt(now)
        if entry is None:
            entry = _Known(bucket_key(node_id, bucket), paid, now)
        entry.wait(bucket.waiting(now), now)
        # An idle bucket was not looked at in the last pass, but then it had no use.
        elapsed = max(now - max(entry.looked_at, self._last_began), 1e-3)
        rate = max(paid - entry.paid, 0.0) / elapsed
        if bucket.average is not None:
            # Requests are rejected by the average, so it is the demand, not what a rejection leaves of it.
            rate = bucket.measure(now)
            if rate < _NOTHING * bucket.whole_limit:
                rate = 0.0
        entry.paid = paid
        entry.used = bucket.used
        entry.looked_at = now
        entry.idle = rate == 0.0 and entry.waiting == 0 and sharing.knows_idle(entry.key)
        use = LocalUse(key=entry.key, limit=bucket.whole_limit, used=paid, rate=rate, waiting=entry.waiting)
        if sharing.hot(use):
            self._uses.append(use)
        return entry

    def end(self) -> list[LocalUse]:
        """End the pass; return the uses of the hot buckets."""
        self._known = self._found
        return self._uses


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
