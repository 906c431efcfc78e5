"""Buckets: one quota's buckets by user and client id (KIP-55) or by address (KIP-612), found with one look-up
per request, or none where the same connection has asked before.
"""

from typing import Final, final

from proxy.quota.identity import CachedLookup, Identity, Names
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limit_source import SOURCED_KEYS, SourcedLimit
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.table import LimitChange
from proxy.quota.measure.bucket import Bucket, RateRule

BUCKETS_AT_MOST: Final = 1 << 17
"""Of one quota. Client ids and addresses are the client's choice: past this many buckets, those that have not
been used for the longest time make room for new ones.
"""
_ROOM: Final = BUCKETS_AT_MOST // 8
_RESOLVED_AT_MOST: Final = 1 << 18
"""Client ids are the client's choice: past this many answers the cache starts anew."""


@final
class _CachedBucket(CachedLookup):
    """The bucket of an Identity in one Buckets, as of one generation of it."""

    __slots__ = ("bucket", "generation")

    def __init__(self, owner: "Buckets", following: CachedLookup | None) -> None:
        super().__init__(owner, following)
        self.bucket: Bucket | None = None
        self.generation = -1


@final
class Buckets:
    """The buckets of one quota key.

    A bucket that loses its limit, or that another level of precedence shadows, keeps its history until it has
    been idle for an hour, so going back finds it.
    """

    def __init__(self, key: str, limits: Limits, rule: RateRule) -> None:
        self.key: Final = key
        self._limits = limits
        self._rule = rule
        self._buckets: Final[dict[tuple[str, str, str], Bucket]] = {}
        """By user, client id and address, as in the bucket."""
        self._resolved: Final[dict[tuple[str, str, str], Bucket]] = {}
        """By user, client id and address of who asks."""
        self._unlimited: Final[set[tuple[str, str, str]]] = set()
        self._generation = 0
        """How often any of those two has been forgotten; what an Identity keeps holds for one of these."""
        self._sourced: Final[set[tuple[str, str, str]]] = set()
        """Buckets whose limit comes from the limits' source."""
        self.any = self._any()
        """Whether any entity has this quota."""

    def _any(self) -> bool:
        sourced = self._limits.source is not None and self.key in SOURCED_KEYS
        return sourced or len(self._limits.configured(self.key)) > 0

    def find(self, who: Identity, now: float) -> Bucket | None:
        """The bucket that holds for a client; None where no quota does."""
        if not self.any:
            return None
        cached = self._cached(who)
        if cached.generation == self._generation:
            return cached.bucket
        asks = (who.principal, who.client_id, "")
        bucket = self._resolved.get(asks)
        if bucket is None and asks not in self._unlimited:
            bucket = self._resolve(asks, now)
            if asks not in self._resolved and asks not in self._unlimited:
                return bucket
        cached.bucket = bucket
        cached.generation = self._generation
        return bucket

    def _cached(self, who: Identity) -> _CachedBucket:
        cached = who.cached
        while cached is not None:
            if cached.owner is self and isinstance(cached, _CachedBucket):
                return cached
            cached = cached.next
        made = _CachedBucket(self, who.cached)
        who.cached = made
        return made

    def find_ip(self, address: str, now: float) -> Bucket | None:
        """The bucket that holds for an address, in its one spelling; None where no quota does."""
        asks = ("", "", address)
        if not self.any or asks in self._unlimited:
            return None
        bucket = self._resolved.get(asks)
        return self._resolve(asks, now) if bucket is None else bucket

    def _resolve(self, asks: tuple[str, str, str], now: float) -> Bucket | None:
        if len(self._resolved) + len(self._unlimited) >= _RESOLVED_AT_MOST:
            self._forget_resolved()
        source = self._limits.source
        if source is not None and not asks[2]:
            sourced = source.find(self.key, asks[0], asks[1], now)
            if sourced is not None:
                return self._resolve_sourced(asks, sourced, now)
        names = self._names(asks)
        limit = UNLIMITED if names is None else self._limit(names)
        if names is None or limit == UNLIMITED:
            self._unlimited.add(asks)
            return None
        bucket = self._buckets.get(names)
        if bucket is None:
            if len(self._buckets) >= BUCKETS_AT_MOST:
                self._make_room()
            bucket = Bucket(
                quota=self.key,
                user=names[0],
                client_id=names[1],
                limit=limit,
                rule=self._rule,
                now=now,
                ip=names[2],
            )
            self._buckets[names] = bucket
        self._resolved[asks] = bucket
        return bucket

    def _resolve_sourced(
        self, asks: tuple[str, str, str], sourced: SourcedLimit, now: float
    ) -> Bucket | None:
        if sourced.limit == UNLIMITED:
            if sourced.keep:
                self._unlimited.add(asks)
            return None
        names = (sourced.user, sourced.client_id, "")
        self._sourced.add(names)
        bucket = self._buckets.get(names)
        if bucket is None:
            bucket = Bucket(
                quota=self.key,
                user=names[0],
                client_id=names[1],
                limit=sourced.limit,
                rule=self._rule,
                now=now,
            )
            self._buckets[names] = bucket
        elif bucket.limit != sourced.limit:
            bucket.configure(sourced.limit, self._rule, now)
        if sourced.keep:
            self._resolved[asks] = bucket
        return bucket

    def _names(self, asks: tuple[str, str, str]) -> tuple[str, str, str] | None:
        if asks[2]:
            return asks
        names = self._limits.bucket(self.key, asks[0], asks[1])
        return None if names is None else (names[0], names[1], "")

    def _limit(self, names: tuple[str, str, str]) -> float:
        if names in self._sourced and self._limits.source is not None:
            return self._buckets[names].limit
        if names[2]:
            return self._limits.ip_limit(self.key, names[2])
        return self._limits.limit(self.key, names[0], names[1])

    def _forget_resolved(self) -> None:
        self._generation += 1
        self._resolved.clear()
        self._unlimited.clear()

    def configure(self, limits: Limits, rule: RateRule, now: float) -> None:
        """Take new limits; every bucket whose limit changes gets its own in place."""
        same_rule = rule.same(self._rule)
        same = same_rule and limits.source is self._limits.source
        change = limits.change_since(self._limits, self.key) if same else None
        self._limits = limits
        self._rule = rule
        self.any = self._any()
        if change is not None:
            self._take(change, now)
            return
        self._forget_resolved()
        for names, bucket in self._buckets.items():
            limit = self._limit(names)
            if limit != bucket.limit or not same_rule:
                bucket.configure(limit, rule, now)

    def _take(self, change: LimitChange, now: float) -> None:
        """Take a change that concerns some entities alone."""
        for user, client_id, ip in change.entities:
            names = (user or "", client_id or "", ip or "")
            bucket = self._buckets.get(names)
            if bucket is not None:
                bucket.configure(self._limit(names), self._rule, now)
        moved = change.moved
        if moved:
            self._generation += 1
            concerned = [asks for asks in self._resolved if _concerned(asks, moved)]
            for asks in concerned:
                del self._resolved[asks]
            self._unlimited.difference_update([asks for asks in self._unlimited if _concerned(asks, moved)])

    def live(self) -> list[Bucket]:
        """Every bucket that has a limit now."""
        return [bucket for bucket in self._buckets.values() if bucket.limit != UNLIMITED]

    def forget_idle(self, now: float) -> None:
        """Drop the buckets that nobody has used for an hour."""
        idle = [names for names, bucket in self._buckets.items() if bucket.idle(now)]
        for names in idle:
            del self._buckets[names]
            self._sourced.discard(names)
        if not idle:
            return
        self._generation += 1
        gone = [asks for asks, bucket in self._resolved.items() if bucket.idle(now)]
        for asks in gone:
            del self._resolved[asks]

    def _make_room(self) -> None:
        """Drop the buckets that nobody has used for the longest time: an eighth of them."""
        used = sorted([bucket.last_used for bucket in self._buckets.values()])
        before = used[_ROOM]
        idle = [names for names, bucket in self._buckets.items() if bucket.last_used < before]
        if not idle:
            # All were used at one moment.
            idle = list(self._buckets)[:_ROOM]
        for names in idle:
            del self._buckets[names]
        self._generation += 1
        self._resolved.clear()


def _concerned(asks: tuple[str, str, str], moved: set[Names]) -> bool:
    """Whether one of these entities may decide which bucket somebody gets."""
    user, client_id, ip = asks
    if ip:
        return (None, None, ip) in moved
    return (user, client_id, None) in moved or (user, None, None) in moved or (None, client_id, None) in moved
