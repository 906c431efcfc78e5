"""What consumers' fetches may bring of the tokens of one bucket."""

from typing import Final

from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fetch_queue import FetchQueue

LEAST_FETCH_SECONDS: Final = 0.25
"""A fetch that is forwarded may bring this many seconds of the limit, even if the bucket has just paid its
debt. Less would mean many small responses, more would mean longer waits between them: this makes about four
responses per second. Consumers that wait for the same bucket share it."""
FIRST_FETCH_SECONDS: Final = 0.05
"""Seconds of the limit that are reserved for the first fetch that a bucket sees."""
GROWTH: Final = 20.0
"""A fetch may bring this many times the bytes that it is expected to bring: the broker does not send all
tokens to each of many fetches that start at once."""


def enforced(bucket: Bucket) -> bool:
    """Whether fetches wait for a bucket."""
    return bucket.limit != UNLIMITED and not bucket.observed


def queue_of(bucket: Bucket) -> FetchQueue:
    """The queue of a bucket, created at the first call."""
    queue = bucket.fetch_queue
    if queue is None:
        queue = bucket.fetch_queue = FetchQueue()
    return queue


def tokens_left(bucket: Bucket, now: float) -> float:
    """The bytes that a bucket allows now; below zero in debt."""
    tokens = bucket.tokens
    if tokens is not None:
        return tokens.measure(now)
    wait = bucket.wait(now)
    if wait > 0.0:
        return -wait * bucket.limit
    left = (bucket.mean_limit(now) - bucket.measure(now)) * bucket.window_seconds
    allowance = bucket.allowance
    return left if allowance is None else min(left, allowance.measure(now))


def free(bucket: Bucket, now: float) -> bool:
    """Whether a bucket has tokens that no fetch has reserved or waits for."""
    queue = queue_of(bucket)
    return tokens_left(bucket, now) - queue.reserved(now) - queue.ahead(None, now) >= 0.0


def first_fetch_bytes(bucket: Bucket, queue: FetchQueue) -> float:
    """The bytes that the first fetch of a connection, or of a partition, is expected to bring."""
    return queue.first_bytes if queue.first_bytes >= 0.0 else bucket.limit * FIRST_FETCH_SECONDS


def most_bytes(left: float, expected: float, limit: float) -> float:
    """The bytes that a fetch may bring of those that are left of a bucket, if no other fetch waits for it."""
    share = expected * GROWTH
    if left < share:
        share = left
    least = limit * LEAST_FETCH_SECONDS
    return share if share > least else least
