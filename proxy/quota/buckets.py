"""Buckets: one quota's buckets by user and client id (KIP-55), found with one look-up per request."""

from typing import Final, final

from proxy.quota.bucket import Bucket, BucketState, Rule
from proxy.quota.identity import Identity
from proxy.quota.limits import UNLIMITED, Limits

_RESOLVED_AT_MOST: Final = 1 << 18
"""Client ids are the client's choice: past this many answers the cache starts anew."""


@final
class Buckets:
    """The buckets of one quota key.

    A bucket that loses its limit, or that another level of precedence shadows, keeps its history until it has
    been idle for an hour, so going back finds it.
    """

    def __init__(self, key: str, limits: Limits, rule: Rule) -> None:
        self.key: Final = key
        self._limits = limits
        self._rule = rule
        self._buckets: Final[dict[tuple[str, str], Bucket]] = {}
        self._resolved: Final[dict[tuple[str, str], Bucket]] = {}
        self._unlimited: Final[set[tuple[str, str]]] = set()
        self._any = len(limits.configured(key)) > 0

    def find(self, who: Identity, now: float) -> Bucket | None:
        """The bucket that holds for a client; None where no quota does."""
        if not self._any:
            return None
        client = (who.principal, who.client_id)
        bucket = self._resolved.get(client)
        if bucket is not None:
            return bucket
        if client in self._unlimited:
            return None
        return self._resolve(client, now)

    def _resolve(self, client: tuple[str, str], now: float) -> Bucket | None:
        if len(self._resolved) + len(self._unlimited) >= _RESOLVED_AT_MOST:
            self._forget_resolved()
        names = self._limits.bucket(self.key, client[0], client[1])
        if names is None:
            self._unlimited.add(client)
            return None
        bucket = self._buckets.get(names)
        if bucket is None:
            limit = self._limits.limit(self.key, names[0], names[1])
            bucket = Bucket(self.key, names[0], names[1], limit, self._rule, now)
            self._buckets[names] = bucket
        self._resolved[client] = bucket
        return bucket

    def _forget_resolved(self) -> None:
        self._resolved.clear()
        self._unlimited.clear()

    def configure(self, limits: Limits, rule: Rule, now: float) -> None:
        """Take new limits; every bucket gets its own in place."""
        self._limits = limits
        self._rule = rule
        self._any = len(limits.configured(self.key)) > 0
        self._forget_resolved()
        for names, bucket in self._buckets.items():
            bucket.configure(limits.limit(self.key, names[0], names[1]), rule, now)

    def states(self, now: float) -> list[BucketState]:
        """Every bucket that has a limit now."""
        return [bucket.state(now) for bucket in self._buckets.values() if bucket.limit != UNLIMITED]

    def forget_idle(self, now: float) -> None:
        """Drop the buckets that nobody has used for an hour."""
        idle = [names for names, bucket in self._buckets.items() if bucket.idle(now)]
        for names in idle:
            del self._buckets[names]
        if idle:
            self._forget_resolved()
