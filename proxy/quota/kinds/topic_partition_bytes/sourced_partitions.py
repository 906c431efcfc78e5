"""SourcedPartitions: buckets of partitions by the rules of a LimitSource, found with one look-up per item."""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limit_source import LimitSource
from proxy.quota.measure.bucket import Bucket, RateRule
from proxy.wire.views import Item

_FOUND_AT_MOST: Final = 1 << 18

Asks = tuple[str, str, str, int]
"""Principal, client id, topic, partition."""


@final
class SourcedPartitions:
    """Those of one quota, on one broker; a source that does not want to know partitions gives none."""

    def __init__(self, key: str) -> None:
        self._key: Final = key
        self._source: LimitSource | None = None
        self._rule = RateRule()
        self._buckets: Final[dict[tuple[str, str], Bucket]] = {}
        self._found: Final[dict[Asks, Bucket | None]] = {}

    @property
    def any(self) -> bool:
        """Whether partitions are asked for."""
        return self._source is not None

    def configure(self, source: LimitSource | None, rule: RateRule, now: float) -> None:
        """Take another source or rule; what was used so far still counts, and the source is asked anew."""
        self._source = source if source is not None and source.by_partition else None
        if not rule.same(self._rule):
            for bucket in self._buckets.values():
                bucket.configure(bucket.limit, rule, now)
        self._rule = rule
        self._found.clear()

    def find(self, item: Item, who: Identity, now: float) -> Bucket | None:
        """The bucket that holds for a client's records of a partition; None where there is no limit."""
        if self._source is None:
            return None
        asks = (who.principal, who.client_id, item.topic, item.partition)
        if asks in self._found:
            return self._found[asks]
        return self._ask(self._source, asks, now)

    def _ask(self, source: LimitSource, asks: Asks, now: float) -> Bucket | None:
        sourced = source.find(self._key, asks[0], asks[1], now, asks[2], asks[3])
        bucket: Bucket | None = None
        if sourced is not None and sourced.limit != UNLIMITED:
            names = (sourced.user, sourced.client_id)
            bucket = self._buckets.get(names)
            if bucket is None:
                bucket = Bucket(
                    quota=self._key,
                    user=names[0],
                    client_id=names[1],
                    limit=sourced.limit,
                    rule=self._rule,
                    now=now,
                )
                self._buckets[names] = bucket
            elif bucket.limit != sourced.limit:
                bucket.configure(sourced.limit, self._rule, now)
        if sourced is None or sourced.keep:
            if len(self._found) >= _FOUND_AT_MOST:
                self._found.clear()
            self._found[asks] = bucket
        return bucket

    def live(self) -> list[Bucket]:
        return [] if self._source is None else list(self._buckets.values())

    def forget_idle(self, now: float) -> None:
        """Drop the buckets that nobody has used for an hour."""
        idle = [names for names, bucket in self._buckets.items() if bucket.idle(now)]
        for names in idle:
            del self._buckets[names]
        if idle:
            self._found.clear()
