"""Buckets: the buckets of one quota key, by user and client id (KIP-55) or by address (KIP-612).

A look-up is one dict access, or none if the connection has used its bucket before.
"""

from typing import Final, final

from proxy.quota.identity import CachedLookup, Identity, Names
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limit_source import SOURCED_KEYS, SourcedLimit
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.table import LimitChange
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule

BUCKETS_AT_MOST: Final = 1 << 17
"""Number of buckets of one quota key. Clients choose their client ids and addresses, so memory must be
bounded: if there are more, the least recently used buckets are dropped.
"""
NAME_BYTES_AT_MOST: Final = 32 << 20
"""Bytes of the names of one quota key's buckets, with the same effect: names of users may be long."""
_ROOM: Final = 8
"""One in this many buckets is dropped at a time, because finding the least recently used ones sorts all."""
_RESOLVED_AT_MOST: Final = 1 << 18
"""Number of cached look-ups. If there are more, the cache is cleared. Clients choose their client ids."""


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
    idle for an hour: if the change is undone, its debt is still there.
    """

    def __init__(self, key: str, limits: Limits, rule: RateRule) -> None:
        self.key: Final = key
        self._limits = limits
        self._rule = rule
        self._buckets: Final[dict[tuple[str, str, str], Bucket]] = {}
        """The buckets by the user, client id and address that they carry."""
        self._name_bytes = 0
        self._resolved: Final[dict[tuple[str, str, str], Bucket]] = {}
        """The buckets by the user, client id and address of the client."""
        self._unlimited: Final[set[tuple[str, str, str]]] = set()
        """Clients without a limit, in the same form."""
        self._generation = 0
        """Incremented when entries of those two are removed; a look-up cached on an Identity is of one
        generation.
        """
        self._sourced: Final[set[tuple[str, str, str]]] = set()
        """Buckets whose limit comes from the limit source."""
        self._others: Final[list[Buckets]] = []
        """The buckets of the same quota with the other scope."""
        self.first_part = 1.0
        """The fraction of its limit with which a new bucket begins: other processes may share the limit."""
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

    def _inherit(self, names: tuple[str, str, str], bucket: Bucket, now: float) -> None:
        found = [others._buckets[names] for others in self._others if names in others._buckets]
        if found:
            bucket.inherit(found, now)

    def _configure(self, names: tuple[str, str, str], bucket: Bucket, limit: float, now: float) -> None:
        returns = bucket.whole_limit == UNLIMITED and limit != UNLIMITED
        bucket.configure(limit, self._rule, now)
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
        bucket = self._resolved.get(client)
        if bucket is None and client not in self._unlimited:
            bucket = self._resolve(client, now)
            if client not in self._resolved and client not in self._unlimited:
                return bucket
        cached.bucket = bucket
        cached.generation = self._generation
        return bucket

    def find_ip(self, address: str, now: float) -> Bucket | None:
        """The bucket of an address in canonical spelling; None if it has no limit."""
        client = ("", "", address)
        if not self.any or client in self._unlimited:
            return None
        bucket = self._resolved.get(client)
        return self._resolve(client, now) if bucket is None else bucket

    def _resolve(self, client: tuple[str, str, str], now: float) -> Bucket | None:
        if len(self._resolved) + len(self._unlimited) >= _RESOLVED_AT_MOST:
            self._forget_resolved()
        source = self._limits.source
        if source is not None and not client[2]:
            sourced = source.find(self.key, client[0], client[1], now)
            if sourced is not None:
                return self._resolve_sourced(client, sourced, now)
        names = self._names(client)
        limit = UNLIMITED if names is None else self._limit(names)
        if names is None or limit == UNLIMITED:
            self._unlimited.add(client)
            return None
        bucket = self._buckets.get(names)
        if bucket is None:
            bucket = self._add(names, limit, now)
        self._resolved[client] = bucket
        return bucket

    def _add(self, names: tuple[str, str, str], limit: float, now: float) -> Bucket:
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
        if not bucket.observed:
            bucket.share(self.first_part, now)
        self._buckets[names] = bucket
        self._name_bytes += size
        self._inherit(names, bucket, now)
        return bucket

    def _drop(self, names: tuple[str, str, str]) -> None:
        del self._buckets[names]
        self._name_bytes -= _size(names)
        self._sourced.discard(names)

    def _resolve_sourced(
        self, client: tuple[str, str, str], sourced: SourcedLimit, now: float
    ) -> Bucket | None:
        if sourced.limit == UNLIMITED or not self._limits.takes_sourced:
            if sourced.keep:
                self._unlimited.add(client)
            return None
        names = (sourced.user, sourced.client_id, "")
        bucket = self._buckets.get(names)
        if bucket is None:
            bucket = self._add(names, sourced.limit, now)
        elif bucket.whole_limit != sourced.limit:
            self._configure(names, bucket, sourced.limit, now)
        self._sourced.add(names)
        if sourced.keep:
            self._resolved[client] = bucket
        return bucket

    def _names(self, client: tuple[str, str, str]) -> tuple[str, str, str] | None:
        if client[2]:
            return client
        names = self._limits.bucket(self.key, client[0], client[1])
        return None if names is None else (names[0], names[1], "")

    def _limit(self, names: tuple[str, str, str]) -> float:
        limits = self._limits
        if names in self._sourced and limits.source is not None and limits.takes_sourced:
            return self._buckets[names].whole_limit
        if names[2]:
            return self._limits.ip_limit(self.key, names[2])
        return self._limits.limit(self.key, names[0], names[1])

    def _forget_resolved(self) -> None:
        self._generation += 1
        self._resolved.clear()
        self._unlimited.clear()

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
            self._unlimited.difference_update(
                [client for client in self._unlimited if _concerned(client, moved)]
            )

    def live(self) -> list[Bucket]:
        """Every bucket that has a limit now."""
        return [bucket for bucket in self._buckets.values() if bucket.limit != UNLIMITED]

    def forget_idle(self, now: float) -> None:
        """Drop the buckets that have not been used for an hour."""
        idle = [names for names, bucket in self._buckets.items() if bucket.idle(now)]
        for names in idle:
            self._drop(names)
        if not idle:
            return
        self._generation += 1
        gone = [client for client, bucket in self._resolved.items() if bucket.idle(now)]
        for client in gone:
            del self._resolved[client]

    def _make_room(self, now: float) -> None:
        """Drop the least recently used buckets, an eighth of all; those with a debt only if there are not
        enough others. A client whose debt is forgotten may send again: another one could make up client ids
        to have it forgotten.
        """
        room = max(len(self._buckets) // _ROOM, 1)
        idle = _least_used(self._buckets, room)
        idle = [names for names in idle if self._buckets[names].wait(now) <= 0.0]
        if len(idle) <= room // 2:
            without_debt = {names: each for names, each in self._buckets.items() if each.wait(now) <= 0.0}
            idle = _least_used(without_debt if len(without_debt) >= room else self._buckets, room)
        for names in idle:
            self._drop(names)
        self._generation += 1
        self._resolved.clear()


def _least_used(buckets: dict[tuple[str, str, str], Bucket], room: int) -> list[tuple[str, str, str]]:
    """The names of the least recently used buckets, about `room` of them."""
    used = sorted([bucket.last_used for bucket in buckets.values()])
    before = used[min(room, len(used) - 1)]
    names = [names for names, bucket in buckets.items() if bucket.last_used < before]
    # All were used at the same time: any of them.
    return names or list(buckets)[:room]


def _size(names: tuple[str, str, str]) -> int:
    return len(names[0]) + len(names[1]) + len(names[2])


def _concerned(client: tuple[str, str, str], moved: set[Names]) -> bool:
    """Whether one of these entities, none of them a default, may decide which bucket a client gets."""
    user, client_id, ip = client
    if ip:
        return (None, None, ip) in moved
    return (user, client_id, None) in moved or (user, None, None) in moved or (None, client_id, None) in moved
