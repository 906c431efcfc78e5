"""PartitionBuckets: the buckets of one topic config, by topic and partition (KAFKA-16042), or by topic."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.identity import Identity
from proxy.quota.limits.config_keys import OMIT, THROTTLE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.resources import NO_RESOURCES, TOPIC, ConfigKey, Resources
from proxy.quota.limits.topic_limits import topic_limit
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.usage import REST
from proxy.wire.cursor import NO_PARTITION
from proxy.wire.views import Found, Item

PARTITIONS_AT_MOST: Final = 100_000
"""Buckets of single partitions; further partitions share one bucket, of the topic REST. Clients can name any
topic.
"""
DROP_SECONDS: Final = 1.0
"""When there are PARTITIONS_AT_MOST buckets, those that have not been used for this time and owe nothing are
dropped. The search takes some milliseconds, so it runs at most once in this time.
"""
UNLIMITED_AT_MOST: Final = 100_000
"""Cached topics without a limit. When there are more, the cache is cleared."""
EXAMINED_AT_MOST: Final = 2048
"""Buckets that are examined at a time whether they are idle: to drop all of them takes half a millisecond."""
DROPPED: Final = -1 << 40
"""The number of a partition whose bucket was dropped: no request has one of more than 32 bits."""


@final
class LimitedPartition(Found):
    """A partition's bucket, and its action: THROTTLE, REJECT or OMIT."""

    __slots__ = ("action", "bucket", "following", "omits", "owner", "partition")

    def __init__(self, owner: "PartitionBuckets", bucket: Bucket, action: str) -> None:
        self.owner: Final = owner
        self.bucket: Final = bucket
        self.action = action
        self.omits = action == OMIT
        """Whether that is the action: a comparison of strings costs more."""
        self.partition: native = bucket.partition
        """DROPPED if the bucket is not used any more."""
        self.following: LimitedPartition | None = None
        """The partition of the same topic that was last looked up after this one: messages mostly have the
        same partitions in the same order, so it is probably looked up next.
        """

    def act(self, action: str) -> None:
        """Set the action."""
        self.action = action
        self.omits = action == OMIT


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
        self._topics: Final[dict[str, dict[int, LimitedPartition]]] = {}
        """By topic and partition: a look-up for each partition of a message makes no tuple."""
        self._topic = ""
        """The topic and buckets of the last look-up: most messages have many partitions of a topic, and one
        object for its name.
        """
        self._partitions: dict[int, LimitedPartition] = {}
        self._last: LimitedPartition | None = None
        """The last partition of this topic that was found."""
        self._count = 0
        """The partitions of all topics."""
        self._unlimited: Final[set[str]] = set()
        """Topics without a limit."""
        self._last_unlimited = ""
        """The last of these that was looked up; empty for none."""
        self._dropped_at = -DROP_SECONDS
        self._unexamined: Final[list[LimitedPartition]] = []
        """The buckets that forget_idle() has not examined yet."""
        self.changes: native = 0
        """How often limits have changed or buckets have been dropped."""
        self.any = False
        """Whether any topic has this config."""
        self.observed = rule.observed
        self.first_parts = FirstParts()
        self.least_limit = UNLIMITED
        """The lowest configured limit: that of the shared bucket."""
        self.least_throttled = UNLIMITED
        """The lowest limit of the topics with the action THROTTLE."""

    def of(self, item: Item, now: float) -> LimitedPartition | None:
        """The bucket of an item's partition; None if it has no limit, or its topic's name is not known."""
        found = item.found
        if isinstance(found, LimitedPartition) and found.owner is self and found.partition == item.partition:
            # Nearly all items: the connection's last message had the same partition at this place.
            return None if found.bucket.limit == UNLIMITED else found
        if not item.topic:
            return None
        limited = self.find(item.topic, item.partition, now)
        if not self._whole_topics:
            item.found = limited
        return limited

    def find(self, topic: str, partition: native, now: float) -> LimitedPartition | None:
        """A partition's bucket; None if it has no limit."""
        if topic is self._last_unlimited and topic:
            return None
        found = self._get(topic, partition)
        if found is None:
            if topic not in self._unlimited:
                return self._make(topic, partition, now)
            self._last_unlimited = topic
            return None
        return None if found.bucket.limit == UNLIMITED else found

    def _get(self, topic: str, partition: native) -> LimitedPartition | None:
        if topic is not self._topic:
            partitions = self._topics.get(topic)
            if partitions is None:
                return None
            self._topic = topic
            self._partitions = partitions
            self._last = None
        number: native = NO_PARTITION if self._whole_topics else partition
        last = self._last
        if last is not None:
            following = last.following
            if following is not None and following.partition == number:
                self._last = following
                return following
        found = self._partitions.get(number)
        if found is not None:
            if last is not None:
                last.following = found
            self._last = found
        return found

    def used(self, topic: str, partition: int) -> LimitedPartition | None:
        """A partition's bucket; None if it has no limit, or records have not been charged to it.

        A client can name partitions that do not exist, but records belong to existing ones.
        """
        found = self._get(topic, partition)
        if found is None and self._count >= PARTITIONS_AT_MOST:
            found = self._get(REST, NO_PARTITION)
        return None if found is None or found.bucket.limit == UNLIMITED else found

    def give_back(
        self, topic: str, partition: int, size: int, now: float, who: Identity, writable: bool
    ) -> None:
        """Take back what was charged for records that the broker has not appended.

        `writable`: whether the client could write to the partition at all. If not, the partition may not
        exist, and its bucket is dropped if nothing else was charged to it.
        """
        found = self._get(topic, partition)
        if found is None or found.bucket.limit == UNLIMITED:
            return
        found.bucket.give_back(size, now, who)
        if not writable and found.bucket.as_new(now):
            self._drop(found)

    def limit(self, topic: str) -> float:
        """The limit of each partition of a topic, or of the topic."""
        return topic_limit(self._resources, topic, self._key)

    def _make(self, topic: str, partition: int, now: float) -> LimitedPartition | None:
        limit = topic_limit(self._resources, topic, self._key)
        if limit == UNLIMITED:
            if len(self._unlimited) >= UNLIMITED_AT_MOST:
                self._unlimited.clear()
            self._unlimited.add(topic)
            return None
        if self._count >= PARTITIONS_AT_MOST:
            self._drop_unused(now)
        if self._whole_topics:
            partition = NO_PARTITION
        if self._count >= PARTITIONS_AT_MOST:
            topic = REST
            partition = NO_PARTITION
            limit = self.least_limit
            found = self._get(topic, partition)
            if found is not None:
                return found
        bucket = Bucket(
            quota=self._key.name, limit=limit, rule=self._rule, now=now, topic=topic, partition=partition
        )
        self.first_parts.give(bucket, now)
        made = LimitedPartition(self, bucket, self._action(topic))
        partitions = self._topics.get(topic)
        if partitions is None:
            self._topics[topic] = {partition: made}
        else:
            partitions[partition] = made
        self._count += 1
        return made

    def _all(self) -> list[LimitedPartition]:
        return [limited for partitions in self._topics.values() for limited in partitions.values()]

    def _drop(self, limited: LimitedPartition) -> None:
        bucket = limited.bucket
        partitions = self._topics[bucket.topic]
        del partitions[bucket.partition]
        if not partitions:
            del self._topics[bucket.topic]
            self._topic = ""
            self._partitions = {}
        limited.partition = DROPPED
        self.changes += 1
        limited.following = None
        self._last = None
        self._count -= 1

    def _drop_unused(self, now: float) -> None:
        """Drop the buckets that have nothing to remember, at most once in DROP_SECONDS."""
        if now - self._dropped_at < DROP_SECONDS:
            return
        self._dropped_at = now
        before = now - DROP_SECONDS
        for limited in self._all():
            if limited.bucket.last_used <= before and limited.bucket.as_new(now):
                self._drop(limited)

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
        self._last_unlimited = ""
        self.changes += 1
        for limited in self._all():
            topic = limited.bucket.topic
            rest = topic == REST
            limit = self.least_limit if rest else topic_limit(resources, topic, self._key)
            limited.act(self._action(topic))
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
        return [limited.bucket for limited in self._all() if limited.bucket.limit != UNLIMITED]

    def forget_idle(self, now: float) -> bool:
        """Drop the buckets that have not been used for an hour. Examine EXAMINED_AT_MOST in each call, and
        return whether more are left of those that there were at the first call.
        """
        left = self._unexamined
        if not left:
            left.extend(self._all())
        for limited in left[-EXAMINED_AT_MOST:]:
            if limited.partition != DROPPED and limited.bucket.idle(now):
                self._drop(limited)
        del left[-EXAMINED_AT_MOST:]
        return len(left) > 0
