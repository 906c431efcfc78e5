"""OmittingPlans: omits partitions that are over their limit from consumers' fetches (the action `omit`).

A partition is omitted while its bucket is in debt, or has promised its tokens to fetches in flight. Otherwise
a fetch gets as many of its bytes as there are tokens for.
"""

from typing import Final, final

from proxy.quota.fetch.consumer_plan import ConsumerItem, ConsumerPlan
from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.buckets import PartitionBuckets
from proxy.quota.limits.config_keys import OMIT
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fetch_tokens import (
    FIRST_FETCH_SECONDS,
    first_fetch_bytes,
    most_bytes,
    queue_of,
    tokens_left,
)
from proxy.wire.api_keys import FETCH

PLACE_SECONDS: Final = 0.5
"""A consumer of an omitted partition loses its place in the queue if it does not fetch for this time after
its turn, or after the response to its last fetch.
"""


@final
class OmittingPlans:
    """The plans of one quota."""

    def __init__(self, consumed: PartitionBuckets, *, whole_topics: bool) -> None:
        """`whole_topics`: whether the partitions of a topic share a bucket."""
        self._consumed: Final = consumed
        self._whole_topics: Final = whole_topics

    def plan(self, plan: ConsumerPlan, now: float) -> None:
        """Omit or bound the partitions of topics with the action `omit`."""
        topic = ""
        omits = False
        least = 0
        sharers = 1
        by_topic = self._sharers(plan) if self._whole_topics else {}
        for item in plan.items:
            if item.topic != topic:
                # A fetch may have thousands of partitions, and few topics.
                topic = item.topic
                omits = self._consumed.action(topic) == OMIT
                sharers = by_topic.get(topic, 1) if omits else 1
                least = int(self._consumed.limit(topic) * FIRST_FETCH_SECONDS / sharers) if omits else 0
            if not omits or item.omitted:
                continue
            limited = self._consumed.used(item.topic, item.partition)
            if limited is None and item.marks.offsets is not None:
                limited = self._consumed.find(item.topic, item.partition, now)
            if limited is not None:
                _plan_item(plan, item, limited.bucket, sharers, now)
            else:
                # It may not exist: it gets a bucket when a response of the broker has named it.
                plan.bound(item, least)

    def _sharers(self, plan: ConsumerPlan) -> dict[str, int]:
        """By topic, the number of partitions that may get bytes of its bucket in a fetch, if there are any.

        It is counted once for all topics: a fetch may have thousands of topics, or name two in turn.
        """
        found: dict[str, int] = {}
        for item in plan.items:
            if item.marks.last_bytes != 0:
                found[item.topic] = found.get(item.topic, 0) + 1
        return found


def _plan_item(plan: ConsumerPlan, item: ConsumerItem, bucket: Bucket, sharers: int, now: float) -> None:
    queue = queue_of(bucket)
    last_bytes = item.marks.last_bytes
    expected = float(last_bytes) if last_bytes >= 0 else first_fetch_bytes(bucket, queue)
    ticket = item.ticket(queue)
    if ticket is None:
        ticket = queue.newcomer()
    elif ticket.granted:
        queue.renew(ticket, float(max(last_bytes, 0)), float(max(last_bytes, 0)))
    item.set_ticket(queue, ticket)
    ticket.size = expected
    left = tokens_left(bucket, now) - queue.before(ticket, now)
    if left < 0.0:
        again = now - left / bucket.limit
        plan.omit(item, again)
        queue.wait(ticket, min(again, plan.answer_at) + PLACE_SECONDS)
        return
    queue.grant(ticket, now)
    plan.bound(item, int(most_bytes(left, expected, bucket.limit) / sharers))


def charge_omittable(bucket: Bucket, size: int, who: Identity, now: float) -> None:
    """Charge records of a partition with the action `omit`, and count how long it will be omitted."""
    queue_of(bucket).first_response(float(size), bucket.limit * FIRST_FETCH_SECONDS)
    seconds = bucket.record(float(size), now)
    if seconds <= 0.0:
        return
    if bucket.observed:
        more = bucket.count_observed(seconds, now)
    else:
        until = now + seconds
        more = max(until - max(bucket.throttled_until, now), 0.0)
        bucket.count_throttle(more, 1, until)
    if who.usage is not None:
        who.usage.count_throttle(FETCH, bucket.quota, more, 1)
