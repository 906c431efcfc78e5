"""BucketState: the values of a bucket at one moment, for metrics and the admin API."""

from typing import Final, final

from proxy.quota.limits.enforcement import ENFORCE
from proxy.wire.cursor import NO_PARTITION


@final
class BucketState:
    """The values of one bucket. Bucket.state() creates it."""

    __slots__ = (
        "client_id",
        "ip",
        "limit",
        "mode",
        "partition",
        "quota",
        "rate",
        "share",
        "throttle_seconds",
        "throttled_requests",
        "throttled_until",
        "tokens",
        "topic",
        "user",
    )

    def __init__(
        self,
        *,
        quota: str,
        limit: float,
        rate: float,
        user: str = "",
        client_id: str = "",
        ip: str = "",
        topic: str = "",
        partition: int = NO_PARTITION,
        throttled_until: float = 0.0,
        throttled_requests: int = 0,
        throttle_seconds: float = 0.0,
        mode: str = ENFORCE,
        tokens: float | None = None,
        share: float | None = None,
    ) -> None:
        self.quota: Final = quota
        """The quota's key, such as producer_byte_rate."""
        self.user: Final = user
        """Empty if all users share the bucket; `client_id` likewise."""
        self.client_id: Final = client_id
        self.ip: Final = ip
        """The address, for a quota of addresses; otherwise empty."""
        self.limit: Final = limit
        """Per second, in the quota's unit."""
        self.share: Final = limit if share is None else share
        """The part of the limit that this process may use, per second."""
        self.rate: Final = rate
        """Bucket.measure(): per second."""
        self.throttled_until: Final = throttled_until
        """The end of the last wait, on the clock of `now`. If it is past, or 0.0, the bucket is not
        throttled.
        """
        self.throttled_requests: Final = throttled_requests
        self.throttle_seconds: Final = throttle_seconds
        """The sum of all waits."""
        self.mode: Final = mode
        """OBSERVE: the three above count what enforcement would have done."""
        self.tokens: Final = tokens
        """The tokens, below zero in debt; None if no tokens limit."""
        self.topic: Final = topic
        """The topic, for a quota of topics; otherwise empty."""
        self.partition: Final = partition
        """The partition, if each has a bucket; otherwise NO_PARTITION."""
