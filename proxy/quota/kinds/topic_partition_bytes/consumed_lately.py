"""ConsumedLately: the limited partitions of which a connection got records in the last minute.

An incremental fetch does not name its partitions, so its bytes are bounded by those that it got before.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket

LATELY_SECONDS: Final = 60.0
"""A bucket that owes something counts for longer: until its debt is paid."""
CONNECTIONS_AT_MOST: Final = 100_000
"""Past this many, all are forgotten: consumers then begin with small fetches again."""


@final
class _Consumer:
    __slots__ = ("at", "buckets")

    def __init__(self) -> None:
        self.at = 0.0
        self.buckets: Final[dict[Bucket, float]] = {}
        """By bucket: when the connection last got records."""


@final
class ConsumedLately:
    """By connection: an Identity belongs to one."""

    def __init__(self) -> None:
        self._consumers: Final[dict[Identity, _Consumer]] = {}

    def consumed(self, who: Identity, bucket: Bucket | None, now: float) -> None:
        """Note that a response had records of a partition with this bucket; None: of one without a limit."""
        consumer = self._consumers.get(who)
        if consumer is None:
            if len(self._consumers) >= CONNECTIONS_AT_MOST:
                self._consumers.clear()
            consumer = _Consumer()
            self._consumers[who] = consumer
        consumer.at = now
        if bucket is not None:
            consumer.buckets[bucket] = now

    def buckets(self, who: Identity, now: float) -> list[Bucket] | None:
        """The buckets that bound a client's next fetch; None if it got no records lately."""
        consumer = self._consumers.get(who)
        if consumer is None:
            return None
        before = now - LATELY_SECONDS
        old = [bucket for bucket, at in consumer.buckets.items() if at <= before and bucket.wait(now) <= 0.0]
        for bucket in old:
            del consumer.buckets[bucket]
        if consumer.at <= before and not consumer.buckets:
            del self._consumers[who]
            return None
        return list(consumer.buckets)

    def forget(self, now: float) -> None:
        """Drop connections that got nothing lately: they may be closed."""
        for who in [who for who, consumer in self._consumers.items() if consumer.at <= now - LATELY_SECONDS]:
            self.buckets(who, now)
