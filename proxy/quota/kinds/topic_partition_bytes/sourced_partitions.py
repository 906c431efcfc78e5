"""SourcedPartitions: the buckets of partitions whose limits come from a LimitSource."""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limit_source import LimitSource
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.measure.rate_rule import RateRule
from proxy.wire.views import Item

FOUND_AT_MOST: Final = 1 << 18
"""Cached results of the source; past this many the cache starts again, empty. Clients choose their client
ids."""

BUCKETS_AT_MOST: Final = 1 << 17
"""Buckets. When there are more, the least recently used eighth is dropped, as in Buckets: a source may give
each client or partition its own bucket, and clients choose both names."""

PartitionUse = tuple[str, str, str, int]
"""Principal, client id, topic, partition."""


@final
class SourcedPartitions:
    """The buckets of one quota key, on one broker."""

    def __init__(self, key: str) -> None:
        self._key: Final = key
        self._source: LimitSource | None = None
        self._rule = RateRule()
        self.first_parts = FirstParts()
        self._buckets: Final[dict[tuple[str, str], Bucket]] = {}
        self._found: Final[dict[PartitionUse, Bucket | None]] = {}

    @property
    def any(self) -> bool:
        """Whether the source has limits of partitions."""
        return self._source is not None

    def configure(self, source: LimitSource | None, rule: RateRule, now: float) -> None:
        """Take a new source or rule, and drop the cached results. The use so far still counts."""
        self._source = source if source is not None and source.by_partition else None
        if not rule.same(self._rule):
            for bucket in self._buckets.values():
                bucket.configure(bucket.whole_limit, rule, now)
        self._rule = rule
        self._found.clear()

    def find(self, item: Item, who: Identity, now: float) -> Bucket | None:
        """The bucket of a client's use of a partition; None if it has no limit."""
        if self._source is None:
            return None
        use = (who.principal, who.client_id, item.topic, item.partition)
        if use in self._found:
            return self._found[use]
        return self._look_up(self._source, use, now)

    def _look_up(self, source: LimitSource, use: PartitionUse, now: float) -> Bucket | None:
        sourced = source.find(self._key, use[0], use[1], now, use[2], use[3])
        bucket: Bucket | None = None
        if sourced is not None and sourced.limit != UNLIMITED:
            names = (sourced.user, sourced.client_id)
            bucket = self._buckets.get(names)
            if bucket is None:
                if len(self._buckets) >= BUCKETS_AT_MOST:
                    self._make_room()
                bucket = Bucket(
                    quota=self._key,
                    user=names[0],
                    client_id=names[1],
                    limit=sourced.limit,
                    rule=self._rule,
                    now=now,
                )
                self.first_parts.give(bucket, now)
                self._buckets[names] = bucket
            elif bucket.whole_limit != sourced.limit:
                bucket.configure(sourced.limit, self._rule, now)
        if sourced is None or sourced.keep:
            if len(self._found) >= FOUND_AT_MOST:
                self._found.clear()
            self._found[use] = bucket
        return bucket

    def _make_room(self) -> None:
        oldest = sorted([(bucket.last_used, names) for names, bucket in self._buckets.items()])
        for _, names in oldest[: max(len(oldest) // 8, 1)]:
            del self._buckets[names]
        self._found.clear()

    def live(self) -> list[Bucket]:
        return [] if self._source is None else list(self._buckets.values())

    def forget_idle(self, now: float) -> None:
        """Drop the buckets that have not been used for an hour."""
        idle = [names for names, bucket in self._buckets.items() if bucket.idle(now)]
        for names in idle:
            del self._buckets[names]
        if idle:
            self._found.clear()
