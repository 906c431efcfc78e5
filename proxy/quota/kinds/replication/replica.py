"""Replica: a follower's copy of a partition that a replication quota is about, as the proxy knows it."""

from typing import Final, final

from proxy.quota.fetch_plan import FetchItem
from proxy.quota.kinds.replication.throttle import Throttle
from proxy.wire.fetch_rewrite import UNKNOWN

ReplicaKey = tuple[int, str, int]
"""The follower's node id, topic, and partition."""
MEASURE_SECONDS: Final = 10.0


@final
class Replica:
    """It is made when the follower first fetches the partition through the proxy."""

    def __init__(self, key: ReplicaKey, now: float) -> None:
        self.follower_id: Final = key[0]
        self.topic: Final = key[1]
        self.partition: Final = key[2]
        self.throttles: list[Throttle] = []
        """The sides that hold it back: of its leader, of its follower, or both."""
        self.leader_id = -1
        self.generation = -1
        """With which leader, and under which limits, that is so."""
        self.in_sync = True
        self.omitted_since = 0.0
        """Since when it is left out of fetches; 0.0 while it is not."""
        self.behind_since = 0.0
        """Since when it is throttled and not in sync; 0.0 while it is not."""
        self.seen_at = now
        self.offset = 0
        self.high_watermark = UNKNOWN
        self.told_at = -MEASURE_SECONDS
        """When its leader has last sent something of it, and said its high watermark."""
        self.batch_bytes = 0
        """The size of its batches, so that none comes in part; 0 where that is not known."""
        self.granted = 0
        """How much of it may come with the fetch that is under way; 0 for none, or for all of it."""
        self.bytes = 0
        """How much has come of it."""
        self._first_offset = UNKNOWN
        self._measured_at = now
        self._measured_watermark = UNKNOWN
        self._inbound = 0.0

    @property
    def lag(self) -> int:
        """Messages that it lacks; 0 where that is not known."""
        return max(self.high_watermark - self.offset, 0)

    @property
    def begins(self) -> bool:
        """Whether nothing of it has come yet."""
        return self.bytes == 0

    @property
    def message_bytes(self) -> float:
        """How large its messages are, on the average; 0.0 where none has come."""
        messages = self.offset - self._first_offset
        return self.bytes / messages if self._first_offset != UNKNOWN and messages > 0 else 0.0

    @property
    def inbound(self) -> float:
        """Bytes per second that are produced to its partition, as far as its high watermark tells."""
        return self._inbound * self.message_bytes

    def see(self, item: FetchItem, now: float) -> None:
        """Its follower asks for it."""
        marks = item.marks
        self.seen_at = now
        if item.fetch_offset < self.offset or self._first_offset == UNKNOWN:
            # Its log was cut off, or begun anew.
            self._first_offset = item.fetch_offset
            self.bytes = 0
        self.offset = item.fetch_offset
        # What its leader had told it before it went away, or another leader, says nothing of now.
        self.high_watermark = marks.high_watermark
        if marks.high_watermark != UNKNOWN:
            self._measure(now)
        if marks.batch_bytes > 0:
            self.batch_bytes = marks.batch_bytes

    def _measure(self, now: float) -> None:
        seconds = now - self._measured_at
        if self._measured_watermark == UNKNOWN or self.high_watermark < self._measured_watermark:
            self._inbound = 0.0
        elif seconds < MEASURE_SECONDS:
            return
        else:
            self._inbound = (self.high_watermark - self._measured_watermark) / seconds
        self._measured_at = now
        self._measured_watermark = self.high_watermark

    def omit(self, lacking: list[Throttle], now: float) -> None:
        """It is left out, for want of bytes on these sides."""
        for throttle in lacking:
            throttle.count_omission(now)
            if self.omitted_since == 0.0:
                throttle.omitted += 1
        if self.omitted_since == 0.0:
            self.omitted_since = now

    def came(self, size: int, now: float) -> None:
        """So many bytes of it have come."""
        self.bytes += size
        self.told_at = now
        # A broker sends one batch however small the bound.
        if size > self.granted > 0 or size < self.batch_bytes:
            self.batch_bytes = size

    def came_in_vain(self) -> None:
        """Nothing has come though it lacks messages: a batch is larger than what was granted."""
        self.batch_bytes = self.granted * 2

    def fit(self, size: float) -> int:
        """As much of a size as whole batches fill, one at least."""
        batch = self.batch_bytes
        if batch <= 0:
            return max(int(size), 1)
        return max(int(size) // batch, 1) * batch
