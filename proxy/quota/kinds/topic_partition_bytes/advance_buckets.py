"""AdvanceBuckets: what users have sent to topics and partitions before it is known whether they may write.

Such records are charged to the bucket of the topic or partition when the broker has appended them. Until
then, each user has a bucket of its own with the same limit, which begins with what the other one has left.
Without it, a client that delays its responses could send any number of records on credit. If the broker
appends the records, the user's bucket keeps the charge: the wait for it has begun, and the longest wait
counts.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.verdict import ALLOW, Verdict

BUCKETS_AT_MOST: Final = 16_384
"""If there are more, the oldest eighth is dropped, so that made-up topics do not use up memory."""


@final
class AdvanceBuckets:
    """The buckets by the bucket of the topic or partition, and by user."""

    def __init__(self) -> None:
        self._buckets: Final[dict[tuple[Bucket, str], Bucket]] = {}

    @property
    def count(self) -> int:
        """The number of buckets."""
        return len(self._buckets)

    def charge(self, bucket: Bucket, size: int, who: Identity, now: float) -> Verdict:
        """Charge records that are not charged to `bucket` yet; return the wait for them."""
        own = self._of(bucket, who, now)
        seconds = own.record(float(size), now, who)
        if seconds <= 0.0:
            return ALLOW
        return Verdict(seconds, bucket=own, ahead_seconds=own.ahead_seconds)

    def give_back(self, bucket: Bucket, size: int, who: Identity, now: float) -> None:
        """Take back what was charged for records that the broker has not got, or not appended."""
        key = (bucket, who.principal)
        own = self._buckets.get(key)
        if own is not None:
            own.give_back(float(size), now, who)
            if own.as_new(now):
                del self._buckets[key]

    def _of(self, bucket: Bucket, who: Identity, now: float) -> Bucket:
        key = (bucket, who.principal)
        own = self._buckets.get(key)
        if own is None:
            if len(self._buckets) >= BUCKETS_AT_MOST:
                self._make_room()
            own = Bucket(
                quota=bucket.quota,
                limit=bucket.limit,
                rule=bucket.rule,
                now=now,
                user=who.principal,
                topic=bucket.topic,
                partition=bucket.partition,
            )
            own.begin_with_rest(bucket, now)
            self._buckets[key] = own
        elif own.limit != bucket.limit or own.rule is not bucket.rule:
            own.configure(bucket.limit, bucket.rule, now)
        return own

    def _make_room(self) -> None:
        for key in list(self._buckets)[: BUCKETS_AT_MOST // 8]:
            del self._buckets[key]

    def forget_idle(self, now: float) -> None:
        """Drop the buckets that limit no more than new ones."""
        for key, own in list(self._buckets.items()):
            if own.as_new(now):
                del self._buckets[key]
