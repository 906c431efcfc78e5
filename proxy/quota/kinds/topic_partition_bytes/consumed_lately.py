"""ConsumedLately: the limited partitions of which a connection got records in the last minute.

An incremental fetch does not name its partitions, so its bytes are bounded by those that it got before.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.buckets import DROPPED, LimitedPartition
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.views import Found, Item

LATELY_SECONDS: Final = 60.0
"""How long a bucket bounds a connection's fetches after its last records. With a debt, it does so until the
debt is paid, even if that takes longer.
"""
CONNECTIONS_AT_MOST: Final = 100_000
"""Past this many, all are forgotten: consumers then begin with small fetches again."""


@final
class Use:
    """The last use of a bucket by a connection, which got records of a partition of the bucket."""

    __slots__ = ("at", "bucket", "limited", "partition", "place", "topic")

    def __init__(self, bucket: Bucket, limited: LimitedPartition | None, place: native, at: float) -> None:
        self.bucket: Final = bucket
        self.limited: Final = limited
        """The bucket's partition; None if a source gives its limit."""
        self.place: native = place
        """The index of the bucket in Consumer.buckets."""
        self.at = at
        """When the connection last got such records."""
        self.topic = bucket.topic
        self.partition: native = DROPPED
        """The number of the partition that is charged to this bucket alone, and for which the client waits;
        DROPPED if it is none of these.
        """
        self.review()

    def review(self) -> None:
        """Set `partition` anew, because the limit, its action or its bucket may have changed."""
        limited = self.limited
        if limited is None or limited.omits or self.bucket.limit == UNLIMITED:
            self.partition = DROPPED
        else:
            self.partition = limited.partition


@final
class Consumer(Found):
    """The buckets to which responses of one connection were charged lately."""

    __slots__ = ("_next", "_oldest", "_places", "_reviewed", "_uses", "at", "buckets", "owner")

    def __init__(self, owner: "ConsumedLately") -> None:
        self.owner: Final = owner
        self.at = 0.0
        """When it last got records."""
        self.buckets: list[Bucket] = []
        """The buckets; read-only. A list only grows: if buckets are dropped, another list takes its place."""
        self._uses: list[Use] = []
        """The uses of these buckets, in the same order."""
        self._oldest = 0.0
        """No bucket was last used before this."""
        self._places: Final[dict[Bucket, Use]] = {}
        self._reviewed: native = 0
        """PartitionBuckets.changes at the last review."""
        self._next: native = 0
        """The place that is probably next: responses mostly have the same partitions in the same order."""

    def knows(self, items: list[Item], count: native) -> bool:
        """Whether the items are charged to the buckets that come next, one after the other, among the first
        `count` of `buckets`. Call review() first.
        """
        uses = self._uses
        size: native = len(uses)
        at = self._next
        for item in items:
            if at >= size:
                at = 0
            if at >= count:
                return False
            use = uses[at]
            if use.partition != item.partition:
                return False
            if item.topic is not use.topic:
                if item.topic != use.topic:
                    return False
                # The next item of the connection has probably the same object, which is compared faster.
                use.topic = item.topic
            at += 1
        return True

    def charge_known(self, items: list[Item], who: Identity, now: float) -> Verdict:
        """Charge items that knows() has just been asked about, and that it knows."""
        verdict = ALLOW
        uses = self._uses
        size: native = len(uses)
        at = self._next
        for item in items:
            if at >= size:
                at = 0
            use = uses[at]
            at += 1
            use.at = now
            seconds = use.bucket.record(float(item.size), now, who)
            if seconds > verdict.throttle_seconds:
                verdict = Verdict(seconds, bucket=use.bucket)
        if items:
            self._next = at
            self.at = now
        return verdict

    def review(self, changes: native) -> None:
        """Review all uses if limits have changed; `changes` is PartitionBuckets.changes."""
        if changes != self._reviewed:
            self._reviewed = changes
            for use in self._uses:
                use.review()

    def got(self, bucket: Bucket, now: float, limited: LimitedPartition | None = None) -> None:
        """Note that a response had records of a partition with this bucket. `limited`: None if a source gives
        its limit.
        """
        at = self._next
        uses = self._uses
        if at >= len(uses):
            at = 0
        if at < len(uses):
            expected = uses[at]
            if expected.bucket is bucket:
                expected.at = now
                self._next = at + 1
                return
        use = self._places.get(bucket)
        if use is None:
            use = Use(bucket, limited, len(uses), now)
            self._places[bucket] = use
            uses.append(use)
            self.buckets.append(bucket)
            self._oldest = min(self._oldest, now)
        use.at = now
        self._next = use.place + 1

    def forget(self, before: float, now: float) -> None:
        """Drop the buckets that were last used before this time and owe nothing."""
        if self._oldest > before:
            return
        old = 0
        self._oldest = now
        for use in self._uses:
            if use.at <= before and use.bucket.wait(now) <= 0.0:
                del self._places[use.bucket]
                old += 1
            else:
                self._oldest = min(self._oldest, use.at)
        if old == 0:
            return
        self._uses = [use for use in self._uses if use.bucket in self._places]
        self.buckets = [use.bucket for use in self._uses]
        for at, use in enumerate(self._uses):
            use.place = at


@final
class ConsumedLately:
    """The consumers of one quota, by connection: an Identity belongs to one connection."""

    def __init__(self) -> None:
        self._consumers: Final[dict[Identity, Consumer]] = {}

    def consumer(self, who: Identity, now: float) -> Consumer:
        """Return the consumer of a connection that gets records now, created at the first call."""
        consumer = self._consumers.get(who)
        if consumer is None:
            if len(self._consumers) >= CONNECTIONS_AT_MOST:
                self._consumers.clear()
            consumer = Consumer(self)
            self._consumers[who] = consumer
        consumer.at = now
        return consumer

    def known(self, who: Identity) -> Consumer | None:
        """The consumer of a connection; None if it got no records lately."""
        return self._consumers.get(who)

    def buckets(self, who: Identity, now: float) -> list[Bucket] | None:
        """The buckets that bound a client's next fetch, read-only; None if it got no records lately."""
        consumer = self._consumers.get(who)
        if consumer is None:
            return None
        before = now - LATELY_SECONDS
        consumer.forget(before, now)
        if consumer.at <= before and not consumer.buckets:
            del self._consumers[who]
            return None
        return consumer.buckets

    def forget(self, now: float) -> None:
        """Drop connections that got nothing lately: they may be closed."""
        for who in [who for who, consumer in self._consumers.items() if consumer.at <= now - LATELY_SECONDS]:
            self.buckets(who, now)
