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

    __slots__ = ("bucket", "used", "waited_at", "waiting")

    def __init__(self, bucket: Bucket, used: float) -> None:
        self.bucket: Final = bucket
        self.used = used
        self.waiting = 0
        self.waited_at = 0.0


@final
class LocalUses:
    """Looks at the live buckets, several times a second."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._looked_at = 0.0

    def look(self, live: Iterable[tuple[int, Bucket]], now: float) -> list[LocalUse]:
        """The uses of all live buckets that processes can share, by their brokers' node ids.

        Broker-side quotas (Bucket.average) and observed ones are not shared.
        """
        elapsed = max(now - self._looked_at, 1e-3)
        known = self._known
        found: dict[str, _Known] = {}
        uses = []
        for node_id, bucket in live:
            if bucket.average is not None or bucket.observed:
                continue
            key = bucket_key(node_id, bucket)
            paid = bucket.used - bucket.debt(now)
            entry = known.get(key)
            if entry is None or entry.bucket is not bucket:
                entry = _Known(bucket, paid if entry is None else min(entry.used, paid))
            waiting = bucket.waiting(now)
            if waiting > 0 or now - entry.waited_at > WAITED_SECONDS:
                entry.waiting = max(waiting, entry.waiting if now - entry.waited_at <= WAITED_SECONDS else 0)
                if waiting > 0:
                    entry.waited_at = now
            found[key] = entry
            rate = max(paid - entry.used, 0.0) / elapsed
            entry.used = paid
            uses.append(
                LocalUse(key=key, limit=bucket.whole_limit, used=paid, rate=rate, waiting=entry.waiting)
            )
        self._known = found
        self._looked_at = now
        return uses

    def apply(self, sharing: Sharing, now: float) -> None:
        """Give each bucket its part of the limit."""
        for key, entry in self._known.items():
            entry.bucket.share(sharing.part(key), now)


def bucket_key(node_id: int, bucket: Bucket) -> str:
    """Return the key of a bucket, the same in all processes. A name may contain any character, so the key has
    the lengths of the names.
    """
    names = (bucket.quota, bucket.user, bucket.client_id, bucket.ip, bucket.topic)
    text = "".join([f"{len(name)}:{name}" for name in names])
    return f"{text}{bucket.partition}/{node_id}"
