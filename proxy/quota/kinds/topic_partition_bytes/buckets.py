"""PartitionBuckets: the buckets of one topic config, by topic and partition (KAFKA-16042), or by topic."""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.config_keys import THROTTLE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.resources import NO_RESOURCES, TOPIC, ConfigKey, Resources
from proxy.quota.limits.topic_limits import topic_limit
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.wire.cursor import NO_PARTITION

PARTITIONS_AT_MOST: Final = 100_000
"""Buckets of single partitions; further partitions share one bucket. Clients can name any topic."""
DROP_SECONDS: Final = 1.0
"""When there are PARTITIONS_AT_MOST buckets, those that have not been used for this time and owe nothing are
dropped. The search takes some milliseconds, so it runs at most once in this time.
"""
UNLIMITED_AT_MOST: Final = 100_000
"""Cached topics without a limit. When there are more, the cache is cleared."""
REST: Final = "<rest>"
"""The topic of the shared bucket. No Kafka topic can have this name."""


@final
class LimitedPartition:
    """A partition's bucket, and its action: THROTTLE, REJECT or OMIT."""

    __slots__ = ("action", "bucket")

    def __init__(self, bucket: Bucket, action: str) -> None:
        self.bucket: Final = bucket
        self.action = action


@final
class PartitionBuckets:
    """The buckets of one config, on one broker; with `whole_topics`, on all brokers, and the partitions of a
    topic share one.

    A bucket that loses its limit is kept until it has been idle for an hour, as those of clients.
    """

    def __init__(
        self, key: ConfigKey, action_key: ConfigKey, rule: RateRule, *, whole_topics: bool = False
    ) -> None:
        self._whole_topics: Final = whole_topics
        self._key: Final = key
        self._action_key: Final = action_key
        self._resources: Resources = NO_RESOURCES
        self._rule = rule
        self._partitions: Final[dict[tuple[str, int], LimitedPartition]] = {}
        self._unlimited: Final[set[str]] = set()
        """Topics without a limit."""
        self._dropped_at = -DROP_SECONDS
        self.any = False
        """Whether any topic has this config."""
        self.observed = rule.observed
        self.least_limit = UNLIMITED
        """The lowest configured limit: that of the shared bucket."""
        self.least_throttled = UNLIMITED
        """The lowest limit of the topics with the action THROTTLE."""

    def find(self, topic: str, partition: int, now: float) -> LimitedPartition | None:
        """A partition's bucket; None if it has no limit."""
        if topic in self._unlimited:
            return None
        names = self._names(topic, partition)
        found = self._partitions.get(names)
        if found is None:
            return self._make(names, now)
        return None if found.bucket.limit == UNLIMITED else found

    def _names(self, topic: str, partition: int) -> tuple[str, int]:
        return (topic, NO_PARTITION) if self._whole_topics else (topic, partition)

    def used(self, topic: str, partition: int) -> LimitedPartition | None:
        """A partition's bucket; None if it has no limit, or records have not been charged to it.

        A client can name partitions that do not exist, but records belong to existing ones.
        """
        found = self._partitions.get(self._names(topic, partition))
        if found is None and len(self._partitions) >= PARTITIONS_AT_MOST:
            found = self._partitions.get((REST, NO_PARTITION))
        return None if found is None or found.bucket.limit == UNLIMITED else found

    def give_back(
        self, topic: str, partition: int, size: int, now: float, who: Identity, writable: bool
    ) -> None:
        """Take back what was charged for records that the broker has not appended.

        `writable`: whether the client could write to the partition at all. If not, the partition may not
        exist, and its bucket is dropped if nothing else was charged to it.
        """
        names = self._names(topic, partition)
        found = self._partitions.get(names)
        if found is None or found.bucket.limit == UNLIMITED:
            return
        found.bucket.give_back(size, now, who)
        if not writable and found.bucket.as_new(now):
            del self._partitions[names]

    def limit(self, topic: str) -> float:
        """The limit of each partition of a topic, or of the topic."""
        return topic_limit(self._resources, topic, self._key)

    def _make(self, names: tuple[str, int], now: float) -> LimitedPartition | None:
        topic = names[0]
        limit = topic_limit(self._resources, topic, self._key)
        if limit == UNLIMITED:
            if len(self._unlimited) >= UNLIMITED_AT_MOST:
                self._unlimited.clear()
            self._unlimited.add(topic)
            return None
        if len(self._partitions) >= PARTITIONS_AT_MOST:
            self._drop_unused(now)
        if len(self._partitions) >= PARTITIONS_AT_MOST:
            names = (REST, NO_PARTITION)
            limit = self.least_limit
            found = self._partitions.get(names)
            if found is not None:
                return found
        bucket = Bucket(
            quota=self._key.name, limit=limit, rule=self._rule, now=now, topic=names[0], partition=names[1]
        )
        made = LimitedPartition(bucket, self._action(names[0]))
        self._partitions[names] = made
        return made

    def _drop_unused(self, now: float) -> None:
        """Drop the buckets that have nothing to remember, at most once in DROP_SECONDS."""
        if now - self._dropped_at < DROP_SECONDS:
            return
        self._dropped_at = now
        before = now - DROP_SECONDS
        unused = [
            names
            for names, limited in self._partitions.items()
            if limited.bucket.last_used <= before and limited.bucket.as_new(now)
        ]
        for names in unused:
            del self._partitions[names]

    def _action(self, topic: str) -> str:
        return self._resources.text(TOPIC, topic, self._action_key.name) or THROTTLE

    def configure(self, resources: Resources, rule: RateRule, now: float) -> None:
        """Take new configs. A bucket whose limit changes keeps its history."""
        same_rule = rule.same(self._rule)
        if same_rule and resources is self._resources:
            return
        self._resources = resources
        self._rule = rule
        self.observed = rule.observed
        values = resources.configured(TOPIC, self._key.name)
        self.any = len(values) > 0
        self.least_limit = min([float(value) for value in values.values()], default=UNLIMITED)
        throttled = [float(value) for topic, value in values.items() if self._action(topic) == THROTTLE]
        self.least_throttled = min(throttled, default=UNLIMITED)
        self._unlimited.clear()
        for names, limited in self._partitions.items():
            rest = names[0] == REST
            limit = self.least_limit if rest else topic_limit(resources, names[0], self._key)
            limited.action = self._action(names[0])
            if limit != limited.bucket.whole_limit or not same_rule:
                limited.bucket.configure(limit, rule, now)

    def acts(self, action: str) -> bool:
        """Whether any topic with this config may have this action."""
        configured = self._resources.configured(TOPIC, self._action_key.name)
        return self.any and action in configured.values()

    def action(self, topic: str) -> str:
        """The action of a topic; empty if it has no limit."""
        limited = topic_limit(self._resources, topic, self._key) != UNLIMITED
        return self._action(topic) if limited else ""

    def live(self) -> list[Bucket]:
        """Every bucket that has a limit now."""
        limited = [limited.bucket for limited in self._partitions.values()]
        return [bucket for bucket in limited if bucket.limit != UNLIMITED]

    def forget_idle(self, now: float) -> None:
        """Drop the buckets that have not been used for an hour."""
        idle = [names for names, limited in self._partitions.items() if limited.bucket.idle(now)]
        for names in idle:
            del self._partitions[names]
