"""Grants: the bytes that the replicas of a follower's fetch are granted."""

from typing import Final, cast, final

from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.throttle import Throttle
from proxy.wire.views import Item


@final
class Grants:
    """The grants of a connection's fetch that is in flight.

    since: when they were made, on the clock of `now`.
    replicas: those that were granted bytes.
    """

    __slots__ = ("_reserved", "replicas", "since")

    def __init__(self, now: float) -> None:
        self.since: Final = now
        self.replicas: Final[list[Replica]] = []
        self._reserved: Final[dict[Throttle, int]] = {}
        """The bytes that are reserved, by throttle."""

    def add(self, plan: FollowerPlan, item: FollowerItem, size: float, now: float) -> None:
        """Grant an item's replica so many bytes, in whole batches, and reserve them."""
        replica = cast("Replica", item.state)
        granted = min(replica.fit(size), item.max_bytes)
        # With a bound of its own, the replica counts as served.
        plan.grant(item, granted)
        replica.granted = granted
        self.replicas.append(replica)
        for throttle in replica.throttles:
            throttle.reserve(granted, now)
            self._reserved[throttle] = self._reserved.get(throttle, 0) + granted

    def release(self, now: float) -> None:
        """Release what is reserved, because the response is charged, or the fetch is planned again."""
        for throttle, size in self._reserved.items():
            throttle.reserve(-size, now)

    def learn(self, items: list[Item]) -> None:
        """Grant more next time to replicas that got nothing although they lack messages: their next batch is
        larger than the grant.
        """
        came = {(item.topic, item.partition) for item in items if item.size > 0}
        for replica in self.replicas:
            if replica.lag > 0 and (replica.topic, replica.partition) not in came:
                replica.got_nothing()

    def end(self) -> None:
        """Note that the fetch has got its response, or is planned again."""
        for replica in self.replicas:
            replica.granted = 0
