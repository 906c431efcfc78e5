"""Rejections: rejects partitions of Produce requests, and throttles producers that retry too fast.

A producer retries what is rejected. So that retries do not exceed the limit many times over, each bucket also
limits the rejected bytes, with a token bucket of the same rate: beyond it, the producer waits until that is
paid, or until the bucket is within its limit again. Until then the producer's other partitions are not
affected. Batches that are rejected only to keep the order (RejectedBatches) were already on their way: they
do not add to the wait.

The response announces the wait (throttle_time_ms). The connection is muted for a part of it only, because
requests that are on their way must be rejected before their client takes them for lost: it would report
records as failed that are appended later.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import IDLE_SECONDS, Bucket
from proxy.quota.measure.rates import TokenBucket
from proxy.quota.quota import Quota
from proxy.quota.rejection.rejected_batches import RejectedBatches
from proxy.quota.usage import REST
from proxy.wire.api_keys import PRODUCE
from proxy.wire.apis.batch_heads import BatchHeads
from proxy.wire.records.producer_batch import read_producer_batch
from proxy.wire.views import Item, RequestView

OUT_OF_ORDER: Final = "order"
"""The reason of a rejection that only keeps the order of batches; other reasons are quota keys."""
TOPICS_AT_MOST: Final = 10_000
"""Topics with counts of their own. Clients may invent topics: past this many, the others count as REST."""
DEBTS_AT_MOST: Final = 10_000
"""Buckets whose rejected bytes are measured. Clients may invent partitions, whose buckets are dropped: past
this many, those without a debt are removed, or all if few are without one.
"""
REJECTED_SECONDS: Final = 1.0
"""How long after a rejection metrics show the bucket as throttled, since there is no wait to show."""
LONGEST_MUTE_SECONDS: Final = 1.0
"""The longest mute of a connection whose request was rejected. Clients retry after about this time."""
MUTES_IN_TIMEOUT: Final = 8.0
"""A mute is at most this part of the request's timeout. A request may be sent while reading ends, and be read
after the mute: it waits for up to two of them.
"""
LEAST_MUTE_SECONDS: Final = 0.1
"""The shortest mute of a client that would wait for longer, also if the timeout in its request is shorter
than any client's.
"""


@final
class RejectedItems:
    """The rejected items of a request, and how long its client waits."""

    __slots__ = ("bucket", "items", "mute_seconds", "throttle_seconds")

    def __init__(
        self,
        items: list[int],
        throttle_seconds: float,
        mute_seconds: float = 0.0,
        bucket: Bucket | None = None,
    ) -> None:
        self.items: Final = items
        """Indices in the request's items, ascending."""
        self.throttle_seconds: Final = throttle_seconds
        """The wait that the response announces as throttle_time_ms."""
        self.mute_seconds: Final = mute_seconds
        """The part of the wait for which the connection is muted."""
        self.bucket: Final = bucket
        """The bucket for which the client waits; None if it does not wait."""


NOTHING_REJECTED: Final = RejectedItems([], 0.0)


@final
class RejectedTopic:
    """Counts the rejections of a topic for one reason, with details of the last one."""

    __slots__ = ("bytes", "client_id", "limit", "principal", "rate", "requests", "whole_limit")

    def __init__(self) -> None:
        self.bytes = 0
        self.requests = 0
        self.principal = ""
        self.client_id = ""
        self.rate = 0.0
        """Bucket.measure() at the last rejection."""
        self.limit = 0.0
        """Bucket.limit then: this process's part of `whole_limit`."""
        self.whole_limit = 0.0


@final
class _RejectedBytes:
    """The rate of rejected bytes of one bucket, limited to the bucket's own limit."""

    __slots__ = ("last_used", "tokens")

    def __init__(self, limit: float, now: float) -> None:
        self.tokens: Final = TokenBucket(limit, limit)
        self.last_used = now


@final
class Rejections:
    """The rejections of one broker."""

    def __init__(self) -> None:
        self.topics: Final[dict[tuple[str, str], RejectedTopic]] = {}
        """By topic and reason (a quota key, or OUT_OF_ORDER); read-only."""
        self._order: Final = RejectedBatches()
        self._rejected_bytes: Final[dict[Bucket, _RejectedBytes]] = {}

    def may_reject(self, quotas: list[Quota], now: float) -> bool:
        """Whether reject() may reject items of a request at this time."""
        if self._order.any:
            return True
        for quota in quotas:  # noqa: SIM110 - any() would create a generator for each request
            if quota.rejects_now(now):
                return True
        return False

    def reject(
        self,
        quotas: list[Quota],
        request: RequestView,
        who: Identity,
        max_seconds: float,
        now: float,
        heads: BatchHeads | None = None,
    ) -> RejectedItems:
        """Reject the items that are over a limit or out of order; the client waits `max_seconds` at most.

        The caller calls count_mute() when it mutes the client.
        """
        over: dict[int, Bucket] = {}
        for quota in quotas:
            quota.reject(request.items, over, now)
        if not over and not self._order.any:
            return NOTHING_REJECTED
        if heads is not None:
            heads.read(request)
        return self._reject_items(request, over, who, max_seconds, now)

    def _reject_items(
        self, request: RequestView, over: dict[int, Bucket], who: Identity, max_seconds: float, now: float
    ) -> RejectedItems:
        """Reject the items whose bucket is `over` its limit, and those that a gate rejects."""
        longest_mute = _longest_mute(request.timeout_ms)
        rejected_items: list[int] = []
        wait = 0.0
        waits_for: Bucket | None = None
        counted: set[tuple[str, str]] = set()
        for index, item in enumerate(request.items):
            bucket = over.get(index)
            batch = read_producer_batch(item.head)
            gate = None if batch is None else self._order.gate_bucket(item, batch, who, now)
            if gate is not None:
                rejected_items.append(index)
                self._count(item, OUT_OF_ORDER, gate, who, counted, now)
            elif bucket is not None:
                rejected_items.append(index)
                self._count(item, bucket.quota, bucket, who, counted, now)
                seconds = min(self._charge_rejected(bucket, item.size, max_seconds, now), bucket.wait(now))
                if seconds > wait:
                    wait = seconds
                    waits_for = bucket
                if batch is not None:
                    mute = min(seconds, longest_mute)
                    self._order.reject(
                        item, batch, who, bucket, throttle_seconds=seconds, mute_seconds=mute, now=now
                    )
            elif batch is not None:
                self._order.admit(item, batch, who)
        if not rejected_items:
            return NOTHING_REJECTED
        return RejectedItems(rejected_items, wait, min(wait, longest_mute), waits_for)

    def count_mute(self, rejected: RejectedItems, who: Identity, now: float) -> None:
        """Count that a client is muted for rejected items."""
        bucket = rejected.bucket
        if bucket is None:
            return
        bucket.count_throttle(rejected.mute_seconds, 0, now + rejected.mute_seconds)
        if who.usage is not None:
            who.usage.count_throttle(PRODUCE, bucket.quota, rejected.mute_seconds, 0)

    def _charge_rejected(self, bucket: Bucket, size: int, max_seconds: float, now: float) -> float:
        """Charge rejected bytes; returns how long their client waits, at most `max_seconds`."""
        rejected = self._rejected_bytes.get(bucket)
        if rejected is None:
            if len(self._rejected_bytes) >= DEBTS_AT_MOST:
                self._make_room(now)
            rejected = _RejectedBytes(bucket.limit, now)
            self._rejected_bytes[bucket] = rejected
        rejected.last_used = now
        rejected.tokens.configure(bucket.limit, bucket.limit, now)
        rejected.tokens.record(size, now)
        seconds = rejected.tokens.throttle_seconds(bucket.limit, now)
        if seconds > max_seconds:
            # A client that ignores the announced wait adds to the debt, and others would have to pay it.
            rejected.tokens.record((max_seconds - seconds) * bucket.limit, now)
            seconds = max_seconds
        return seconds

    def _make_room(self, now: float) -> None:
        """Remove at least an eighth of the rates of rejected bytes."""
        paid = [bucket for bucket, rejected in self._rejected_bytes.items() if rejected.tokens.full(now)]
        for bucket in paid:
            del self._rejected_bytes[bucket]
        if len(paid) < DEBTS_AT_MOST // 8:
            self._rejected_bytes.clear()

    def _count(
        self,
        item: Item,
        reason: str,
        bucket: Bucket,
        who: Identity,
        counted: set[tuple[str, str]],
        now: float,
    ) -> None:
        """Count an item, and its request once per topic and reason."""
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
            # As in `topics`, the request counts once per topic.
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
            rejected.whole_limit = bucket.whole_limit

    def clear(self) -> None:
        """Forget gates and debts, since no quota rejects any more. The counts stay."""
        self._order.clear()
        self._rejected_bytes.clear()

    def forget_idle(self, now: float) -> None:
        """Drop the state that has not been used for an hour."""
        self._order.forget(now)
        idle = [
            bucket
            for bucket, rejected in self._rejected_bytes.items()
            if now - rejected.last_used >= IDLE_SECONDS
        ]
        for bucket in idle:
            del self._rejected_bytes[bucket]


def _longest_mute(timeout_ms: int) -> float:
    return min(LONGEST_MUTE_SECONDS, max(timeout_ms / 1000.0 / MUTES_IN_TIMEOUT, LEAST_MUTE_SECONDS))
