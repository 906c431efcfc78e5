"""Rejections: which partitions of a Produce request do not go on, how long their producer waits, and what has
been rejected so far.

What is rejected comes again. A producer that sends it over and over waits: what comes to be rejected, by the
limit in question, may be as much as that limit; beyond it the client is not read for as long as it takes, or
until it is under the limit again. The rest of its partitions has no part in this until then. What is
rejected only because it came behind a rejected batch was on its way, and adds nothing to the wait.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import IDLE_SECONDS, Bucket
from proxy.quota.measure.rates import TokenBucket
from proxy.quota.quota import Quota
from proxy.quota.rejection.rejected_batches import RejectedBatches
from proxy.wire.api_keys import PRODUCE
from proxy.wire.producer_batch import read_producer_batch
from proxy.wire.views import Item, RequestView

OUT_OF_ORDER: Final = "order"
"""The reason of what is rejected because an earlier batch of its partition was, and has not come again."""
TOPICS_AT_MOST: Final = 10_000
REST: Final = "<rest>"
"""The topic under which the rest is counted."""
REJECTED_SECONDS: Final = 1.0
"""So long after a rejection its bucket is shown as throttling."""


@final
class RejectedItems:
    """What of a request does not go on, and for how long its client has to wait from then on."""

    __slots__ = ("items", "throttle_seconds")

    def __init__(self, items: list[int], throttle_seconds: float) -> None:
        self.items: Final = items
        """Places among the request's items, ascending."""
        self.throttle_seconds: Final = throttle_seconds


NOTHING_REJECTED: Final = RejectedItems([], 0.0)


@final
class RejectedTopic:
    """What has been rejected of a topic for one reason, and the latest of it."""

    __slots__ = ("bytes", "client_id", "limit", "principal", "rate", "requests")

    def __init__(self) -> None:
        self.bytes = 0
        self.requests = 0
        self.principal = ""
        self.client_id = ""
        self.rate = 0.0
        """What the bucket measured at the latest."""
        self.limit = 0.0


@final
class _Wasted:
    """What comes to be rejected."""

    __slots__ = ("last_used", "tokens")

    def __init__(self, limit: float, now: float) -> None:
        self.tokens: Final = TokenBucket(limit, limit)
        self.last_used = now


@final
class Rejections:
    """Those of one broker."""

    def __init__(self) -> None:
        self.topics: Final[dict[tuple[str, str], RejectedTopic]] = {}
        """By topic and reason: the key of the quota, or OUT_OF_ORDER. Not to be changed."""
        self._order: Final = RejectedBatches()
        self._wasted: Final[dict[Bucket, _Wasted]] = {}

    def judge(
        self, quotas: list[Quota], request: RequestView, who: Identity, max_seconds: float, now: float
    ) -> RejectedItems:
        """The items that do not go on, and how long their client waits, `max_seconds` at most."""
        over: dict[int, Bucket] = {}
        for quota in quotas:
            quota.reject(request.items, over, now)
        if not over and not self._order.any:
            return NOTHING_REJECTED
        held: list[int] = []
        wait = 0.0
        waits_for: Bucket | None = None
        counted: set[tuple[str, str]] = set()
        for index, item in enumerate(request.items):
            bucket = over.get(index)
            batch = read_producer_batch(item.head)
            behind = None if batch is None else self._order.behind(item, batch, who, now)
            if behind is not None:
                held.append(index)
                self._count(item, OUT_OF_ORDER, behind, who, counted, now)
            elif bucket is not None:
                held.append(index)
                self._count(item, bucket.quota, bucket, who, counted, now)
                seconds = min(self._waste(bucket, item.size, now), bucket.wait(now), max_seconds)
                if seconds > wait:
                    wait = seconds
                    waits_for = bucket
                if batch is not None:
                    self._order.reject(item, batch, who, bucket, now + seconds)
            elif batch is not None:
                self._order.admit(item, batch, who)
        if waits_for is not None:
            waits_for.count_throttle(wait, 0, now + wait)
            if who.usage is not None:
                who.usage.count_throttle(PRODUCE, waits_for.quota, wait, 0)
        return RejectedItems(held, wait) if held else NOTHING_REJECTED

    def _waste(self, bucket: Bucket, size: int, now: float) -> float:
        wasted = self._wasted.get(bucket)
        if wasted is None:
            wasted = _Wasted(bucket.limit, now)
            self._wasted[bucket] = wasted
        wasted.last_used = now
        wasted.tokens.configure(bucket.limit, bucket.limit, now)
        wasted.tokens.record(size, now)
        return wasted.tokens.throttle_seconds(bucket.limit, now)

    def _count(
        self,
        item: Item,
        reason: str,
        bucket: Bucket,
        who: Identity,
        counted: set[tuple[str, str]],
        now: float,
    ) -> None:
        """Count an item, and its request where this is the first of its topic and reason."""
        bucket.count_throttle(0.0, 0, now + REJECTED_SECONDS)
        names = (item.topic, reason)
        rejected = self.topics.get(names)
        if rejected is None:
            if len(self.topics) >= TOPICS_AT_MOST:
                names = (REST, reason)
            rejected = self.topics.setdefault(names, RejectedTopic())
        rejected.bytes += item.size
        first = names not in counted
        if who.usage is not None:
            # The request counts once for a topic, as in the counters.
            who.usage.count_rejected(PRODUCE, reason, item, 1 if first else 0)
            if first:
                who.usage.count_throttle(PRODUCE, bucket.quota, 0.0, 1)
        if first:
            counted.add(names)
            rejected.requests += 1
            bucket.count_throttle(0.0, 1, now)
            rejected.principal = who.principal
            rejected.client_id = who.client_id
            rejected.rate = bucket.measure(now)
            rejected.limit = bucket.limit

    def clear(self) -> None:
        """Nothing is rejected any more; what has been stays counted."""
        self._order.clear()
        self._wasted.clear()

    def forget_idle(self, now: float) -> None:
        """Drop the state that nobody has used for an hour."""
        self._order.forget(now)
        gone = [bucket for bucket, wasted in self._wasted.items() if now - wasted.last_used >= IDLE_SECONDS]
        for bucket in gone:
            del self._wasted[bucket]
