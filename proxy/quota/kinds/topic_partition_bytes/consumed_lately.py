"""ConsumedLately: which limited partitions a connection's answers have brought records of.

A fetch in a session does not say what it asks for, so what it may bring is judged by what came before.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket

LATELY_SECONDS: Final = 60.0
"""Longer than a client waits for its quota at once, so that it still counts afterwards."""
CONNECTIONS_AT_MOST: Final = 100_000


@final
class _Consumer:
    __slots__ = ("at", "buckets")

    def __init__(self) -> None:
        self.at = 0.0
        self.buckets: Final[dict[Bucket, float]] = {}
        """When it last had records of each."""


@final
class ConsumedLately:
    """By connection, which an Identity stands for."""

    def __init__(self) -> None:
        self._consumers: Final[dict[Identity, _Consumer]] = {}

    def consumed(self, who: Identity, bucket: Bucket | None, now: float) -> None:
        """An answer brought records of a partition with this bucket; None: of one without a limit."""
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
        """The buckets that count for a client's next fetch; None where it has had no records lately."""
        consumer = self._consumers.get(who)
        if consumer is None:
            return None
        if consumer.at <= now - LATELY_SECONDS:
            del self._consumers[who]
            return None
        old = [bucket for bucket, at in consumer.buckets.items() if at <= now - LATELY_SECONDS]
        for bucket in old:
            del consumer.buckets[bucket]
        return list(consumer.buckets)

    def forget(self, now: float) -> None:
        """Drop those that have had nothing lately; their connections may be closed."""
        gone = [who for who, consumer in self._consumers.items() if consumer.at <= now - LATELY_SECONDS]
        for who in gone:
            del self._consumers[who]
