"""LocalUses: reports the use of this process's buckets, and sets their parts of their limits."""

from collections.abc import Iterable
from typing import Final, final

from proxy.quota.measure.bucket import Bucket
from proxy.quota.sharing.sharing import LocalUse, Sharing

WAITED_SECONDS: Final = 1.0
"""A connection counts as waiting for this long after a wait, because it is about to send its next request,
which will wait too.
"""


@final
class _Known:
    """A bucket as of the last look at it."""

    __slots__ = ("idle", "key", "paid", "used", "waited_at", "waiting")

    def __init__(self, key: str, paid: float) -> None:
        self.key: Final = key
        self.used = 0.0
        """Bucket.used."""
        self.paid = paid
        """The same without the debt."""
        self.idle = False
        """Whether it had no use and no waiting connection."""
        self.waiting = 0
        self.waited_at = 0.0


@final
class LocalUses:
    """Looks at the live buckets, several times a second."""

    def __init__(self) -> None:
        self._known: dict[Bucket, _Known] = {}
        self._looked_at = 0.0

    def look(self, live: Iterable[tuple[int, Bucket]], now: float) -> list[LocalUse]:
        """Return the uses of live buckets. `live` has the node id of each bucket's broker.

        Broker-side quotas (Bucket.average) and observed ones are not shared. Buckets that are still idle have
        no entry in the result, and take little time: clients may make up 100,000 client ids.
        """
        elapsed = max(now - self._looked_at, 1e-3)
        known = self._known
        found: dict[Bucket, _Known] = {}
        uses = []
        for node_id, bucket in live:
            if bucket.average is not None or bucket.observed:
                continue
            entry = known.get(bucket)
            if entry is not None and entry.idle and entry.used == bucket.used:
                found[bucket] = entry
                continue
            paid = bucket.used - bucket.debt(now)
            if entry is None:
                entry = _Known(bucket_key(node_id, bucket), paid)
            waiting = bucket.waiting(now)
            if waiting > 0 or now - entry.waited_at > WAITED_SECONDS:
                entry.waiting = max(waiting, entry.waiting if now - entry.waited_at <= WAITED_SECONDS else 0)
                if waiting > 0:
                    entry.waited_at = now
            found[bucket] = entry
            rate = max(paid - entry.paid, 0.0) / elapsed
            entry.paid = paid
            entry.used = bucket.used
            entry.idle = rate == 0.0 and entry.waiting == 0
            uses.append(
                LocalUse(key=entry.key, limit=bucket.whole_limit, used=paid, rate=rate, waiting=entry.waiting)
            )
        self._known = found
        self._looked_at = now
        return uses

    def apply(self, sharing: Sharing, now: float) -> None:
        """Give each bucket its part of the limit."""
        for bucket, entry in self._known.items():
            bucket.share(sharing.part(entry.key), now)


def bucket_key(node_id: int, bucket: Bucket) -> str:
    """Return the key of a bucket, the same in all processes. A name may contain any character, so the key has
    the lengths of the names.
    """
    names = (bucket.quota, bucket.user, bucket.client_id, bucket.ip, bucket.topic)
    text = "".join([f"{len(name)}:{name}" for name in names])
    return f"{text}{bucket.partition}/{node_id}"
