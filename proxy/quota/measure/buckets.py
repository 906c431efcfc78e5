"""Buckets: the buckets of one quota key, by user and client id (KIP-55) or by address (KIP-612).

A look-up takes two dict accesses, or none if the connection has used its bucket before. Clients choose client
ids, so there may be very many buckets, and no step walks all of them unless a quota changes.
"""

from heapq import heappop, heappush
from sys import getsizeof
from typing import Final, final

from proxy.quota.identity import CachedLookup, Identity, Names
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limit_source import SOURCED_KEYS, SourcedLimit
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.table import LimitChange
from proxy.quota.measure.bucket import IDLE_SECONDS, Bucket
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.measure.rate_rule import RateRule

BUCKETS_AT_MOST: Final = 1 << 17
"""Number of buckets of one quota key. Clients choose their client ids and addresses, so memory must be
bounded: if there are more, the least recently used buckets are dropped.
"""
NAME_BYTES_AT_MOST: Final = 32 << 20
"""Bytes of memory that the names of one quota key's buckets take, with the same effect: users may have long
names.
"""
EXAMINED_AT_MOST: Final = 64
"""The buckets of which one is dropped for a new one: to examine all would make other connections wait."""
FORGOTTEN_AT_MOST: Final = 512
"""The idle buckets that are dropped at a time, in a millisecond, for the same reason."""
_RESOLVED_AT_MOST: Final = 1 << 17
"""Number of cached look-ups. Each further one replaces the oldest."""
RESOLVED_BYTES_AT_MOST: Final = 512
"""Bytes of memory of the names of a cached look-up: it is not cached if they take more. One character that
takes four bytes makes all characters of a name take four bytes each.
"""

ClientNames = tuple[str, str, str]
"""A user, a client id and an address; those that do not apply are empty."""


@final
class _CachedBucket(CachedLookup):
    """The bucket of an Identity in one Buckets object, valid for one generation of it."""

    __slots__ = ("bucket", "generation")

    def __init__(self, owner: "Buckets", following: CachedLookup | None) -> None:
        super().__init__(owner, following)
        self.bucket: Bucket | None = None
        self.generation = -1


@final
class Buckets:
    """The buckets of one quota key.

    A bucket that loses its limit, or whose level of precedence no longer applies, is kept until it has been
    idle for an hour: if the change is undone, its debt is still there, unless the key forgets debts.
    """

    def __init__(self, key: str, limits: Limits, rule: RateRule, *, forgets_debts: bool = False) -> None:
        """`forgets_debts`: whether a limit that is removed and set again begins with all tokens, as Kafka's
        token bucket does.
        """
        self.key: Final = key
        self._forgets_debts: Final = forgets_debts
        self._limits = limits
        self._rule = rule
        self._buckets: Final[dict[ClientNames, Bucket]] = {}
        """The buckets by the user, client id and address that they carry."""
        self._name_bytes = 0
        self._oldest: Final[list[Bucket]] = []
        """A heap of all buckets. Bucket.kept_until was the last use when the bucket was put into it, or the
        time at which its debt will be paid.
        """
        self._resolved: Final[dict[ClientNames, ClientNames | None]] = {}
        """The names that the bucket of a client carries, by those of the client; None: it has no limit."""
        self._resolved_order: Final[list[ClientNames]] = []
        """The keys in the order in which they were added, in a ring."""
        self._resolved_next = 0
        """The place in the ring of the key that is replaced next."""
        self._generation = 0
        """Incremented when buckets are dropped, or clients may have others; a look-up cached on an Identity
        is of one generation.
        """
        self._sourced: Final[set[ClientNames]] = set()
        """Buckets whose limit comes from the limit source."""
        self._others: Final[list[Buckets]] = []
        """The buckets of the same quota with the other scope."""
        self.first_parts = FirstParts()
        self.any = self._any()
        """Whether any client may have this quota."""

    def _any(self) -> bool:
        sourced = self._limits.source is not None and self.key in SOURCED_KEYS
        return self._limits.any(self.key) or (sourced and self._limits.takes_sourced)

    def inherit_from(self, others: "Buckets") -> None:
        """Let a bucket that gets a limit begin with what its clients have used of these.

        The scope of a quota may change. Otherwise its clients would have a burst from each new bucket.
        """
        self._others.append(others)

    def _inherit(self, names: ClientNames, bucket: Bucket, now: float) -> None:
        found = [others._buckets[names] for others in self._others if names in others._buckets]
        if found:
            bucket.inherit(found, now)

    def _configure(self, names: ClientNames, bucket: Bucket, limit: float, now: float) -> None:
        returns = bucket.whole_limit == UNLIMITED and limit != UNLIMITED
        bucket.configure(limit, self._rule, now)
        if self._forgets_debts and limit == UNLIMITED:
            bucket.forget_tokens()
        if returns:
            self._inherit(names, bucket, now)

    def find(self, who: Identity, now: float) -> Bucket | None:
        """The bucket of a client; None if it has no limit."""
        if not self.any:
            return None
        entry = who.cached
        while entry is not None and entry.owner is not self:
            entry = entry.next
        if isinstance(entry, _CachedBucket):
            cached = entry
            if cached.generation == self._generation:
                return cached.bucket
        else:
            cached = _CachedBucket(self, who.cached)
            who.cached = cached
        client = (who.principal, who.client_id, "")
        bucket = self._find(client, now)
        if client not in self._resolved:
            return bucket
        cached.bucket = bucket
        cached.generation = self._generation
        return bucket

    def find_ip(self, address: str, now: float) -> Bucket | None:
        """The bucket of an address in canonical spelling; None if it has no limit."""
        return self._find(("", "", address), now) if self.any else None

    def _find(self, client: ClientNames, now: float) -> Bucket | None:
        if client in self._resolved:
            names = self._resolved[client]
            bucket = None if names is None else self._buckets.get(names)
            if names is None or bucket is not None:
                return bucket
        return self._resolve(client, now)

    def _remember(self, client: ClientNames, names: ClientNames | None) -> None:
        """Cache a look-up, unless its names are too long."""
        if _size(client) > RESOLVED_BYTES_AT_MOST:
            return
        resolved, order = self._resolved, self._resolved_order
        if client not in resolved:
            if len(order) < _RESOLVED_AT_MOST:
                order.append(client)
            else:
                resolved.pop(order[self._resolved_next], None)
                order[self._resolved_next] = client
                self._resolved_next = (self._resolved_next + 1) % _RESOLVED_AT_MOST
        resolved[client] = names

    def _resolve(self, client: ClientNames, now: float) -> Bucket | None:
        source = self._limits.source
        if source is not None and not client[2]:
            sourced = source.find(self.key, client[0], client[1], now)
            if sourced is not None:
                return self._resolve_sourced(client, sourced, now)
        names = self._names(client)
        limit = UNLIMITED if names is None else self._limit(names)
        if names is None or limit == UNLIMITED:
            self._remember(client, None)
            return None
        bucket = self._buckets.get(names)
        if bucket is None:
            bucket = self._add(names, limit, now)
        self._remember(client, names)
        return bucket

    def _add(self, names: ClientNames, limit: float, now: float) -> Bucket:
        size = _size(names)
        while self._buckets and (
            len(self._buckets) >= BUCKETS_AT_MOST or self._name_bytes + size > NAME_BYTES_AT_MOST
        ):
            self._make_room(now)
        bucket = Bucket(
            quota=self.key,
            user=names[0],
            client_id=names[1],
            limit=limit,
            rule=self._rule,
            now=now,
            ip=names[2],
        )
        self.first_parts.give(bucket, now)
        self._buckets[names] = bucket
        heappush(self._oldest, bucket)
        self._name_bytes += size
        self._inherit(names, bucket, now)
        return bucket

    def _drop(self, bucket: Bucket) -> None:
        """Drop a bucket that has been taken out of the heap."""
        names = (bucket.user, bucket.client_id, bucket.ip)
        self._generation += 1
        del self._buckets[names]
        self._name_bytes -= _size(names)
        self._sourced.discard(names)

    def _resolve_sourced(self, client: ClientNames, sourced: SourcedLimit, now: float) -> Bucket | None:
        if sourced.limit == UNLIMITED or not self._limits.takes_sourced:
            if sourced.keep:
                self._remember(client, None)
            return None
        names = (sourced.user, sourced.client_id, "")
        bucket = self._buckets.get(names)
        if bucket is None:
            bucket = self._add(names, sourced.limit, now)
        elif bucket.whole_limit != sourced.limit:
            self._configure(names, bucket, sourced.limit, now)
        self._sourced.add(names)
        if sourced.keep:
            self._remember(client, names)
        return bucket

    def _names(self, client: ClientNames) -> ClientNames | None:
        if client[2]:
            return client
        names = self._limits.bucket(self.key, client[0], client[1])
        return None if names is None else (names[0], names[1], "")

    def _limit(self, names: ClientNames) -> float:
        limits = self._limits
        if names in self._sourced and limits.source is not None and limits.takes_sourced:
            return self._buckets[names].whole_limit
        if names[2]:
            return self._limits.ip_limit(self.key, names[2])
        return self._limits.limit(self.key, names[0], names[1])

    def _forget_resolved(self) -> None:
        self._generation += 1
        self._resolved.clear()
        self._resolved_order.clear()
        self._resolved_next = 0

    def configure(self, limits: Limits, rule: RateRule, now: float) -> None:
        """Set new limits. A bucket whose limit changes keeps its history."""
        same_rule = rule.same(self._rule)
        same = (
            same_rule
            and limits.source is self._limits.source
            and limits.settings.scopes.same(self._limits.settings.scopes)
        )
        change = limits.change_since(self._limits, self.key) if same else None
        self._limits = limits
        self._rule = rule
        self.any = self._any()
        if change is not None:
            self._apply(change, now)
            return
        self._forget_resolved()
        for names, bucket in self._buckets.items():
            limit = self._limit(names)
            if limit != bucket.whole_limit or not same_rule:
                self._configure(names, bucket, limit, now)

    def _apply(self, change: LimitChange, now: float) -> None:
        """Apply a change that is known to concern only some entities."""
        for user, client_id, ip in change.entities:
            names = (user or "", client_id or "", ip or "")
            bucket = self._buckets.get(names)
            if bucket is not None:
                self._configure(names, bucket, self._limit(names), now)
        moved = change.moved
        if moved:
            self._generation += 1
            concerned = [client for client in self._resolved if _concerned(client, moved)]
            for client in concerned:
                del self._resolved[client]

    def live(self) -> list[Bucket]:
        """Every bucket that has a limit now."""
        return [bucket for bucket in self._buckets.values() if bucket.limit != UNLIMITED]

    def forget_idle(self, now: float) -> bool:
        """Drop buckets that have not been used for an hour, FORGOTTEN_AT_MOST at most; return whether there
        may be more.
        """
        oldest = self._oldest
        left = FORGOTTEN_AT_MOST
        while left > 0 and oldest and oldest[0].kept_until <= now - IDLE_SECONDS:
            left -= 1
            bucket = heappop(oldest)
            if bucket.idle(now):
                self._drop(bucket)
            else:
                bucket.kept_until = _kept_until(bucket, now)
                heappush(oldest, bucket)
        return left <= 0

    def _make_room(self, now: float) -> None:
        """Drop the least recently used bucket without a debt. A client whose debt is forgotten may send
        again: another one could make up client ids to have it forgotten. If EXAMINED_AT_MOST buckets have
        been used since, or have a debt, drop the one with the earliest time among these.
        """
        oldest = self._oldest
        kept: list[Bucket] = []
        while oldest and len(kept) < EXAMINED_AT_MOST:
            bucket = heappop(oldest)
            until = _kept_until(bucket, now)
            if until <= min(bucket.kept_until, now):
                break
            bucket.kept_until = until
            kept.append(bucket)
        else:
            bucket = min(kept)
            kept.remove(bucket)
        self._drop(bucket)
        for bucket in kept:
            heappush(oldest, bucket)


def _kept_until(bucket: Bucket, now: float) -> float:
    """The time at which a bucket was used last, or will have paid its debt."""
    wait = bucket.wait(now)
    return now + wait if wait > 0.0 else bucket.last_used


def _size(names: ClientNames) -> int:
    """The bytes of memory that the names take."""
    return sum([getsizeof(name) for name in names if name])


def _concerned(client: ClientNames, moved: set[Names]) -> bool:
    """Whether one of these entities, none of them a default, may decide which bucket a client gets."""
    user, client_id, ip = client
    if ip:
        return (None, None, ip) in moved
    return (user, client_id, None) in moved or (user, None, None) in moved or (None, client_id, None) in moved
