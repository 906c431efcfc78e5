"""FirstParts: the part of its limit with which a bucket begins."""

from proxy.quota.measure.bucket import Bucket


class FirstParts:
    """Used by everything that makes buckets, or gives them a limit later. Without sharing, this is the whole
    limit; SharedFirstParts overrides it.
    """

    def of(self, bucket: Bucket) -> float:
        """The part of its limit that this process may use, above 0.0."""
        return 1.0

    def before(self, bucket: Bucket) -> float:
        """The part of its limit that this process might have used until now, during Kafka's window."""
        return self.of(bucket)

    def give(self, bucket: Bucket, now: float) -> None:
        """Have a bucket begin with its part. Its burst is a part, too. Observed buckets are not shared."""
        if bucket.observed:
            return
        if bucket.windowed:
            bucket.share(self.before(bucket), now)
        bucket.share(self.of(bucket), now)
