"""Replica: the state of a follower's replica of a partition, as seen in its fetches."""

from typing import Final, final

from proxy.quota.fetch.follower_plan import FollowerItem, ItemState, SessionState
from proxy.quota.kinds.replication.throttle import Throttle
from proxy.wire.fetch.rewrite import UNKNOWN

ReplicaKey = tuple[int, str, int]
"""The follower's node id, topic, and partition."""
MEASURE_SECONDS: Final = 10.0
"""The time between two measurements of the inbound rate: long enough to smooth bursts of producers."""


class FollowerSession(SessionState):
    """A fetch session of a follower. Each fetch of the session fetches all of its replicas."""

    def __init__(self) -> None:
        self.seen_at = 0.0
        """The time of the last plan."""
        self.again: Final[dict[FollowerItem, None]] = {}
        """The items about which the next plan decides anew, though the session reports no change."""


@final
class Replica(ItemState):
    """The state of one replica. It is created when the follower first fetches it through the proxy."""

    def __init__(self, key: ReplicaKey, now: float) -> None:
        self.topic: Final = key[1]
        self.partition: Final = key[2]
        self.throttles: list[Throttle] = []
        """The throttles that may omit it: its leader's, its follower's, or both."""
        self.leader_id = -1
        self.generation = -1
        """The leader and the generation of limits for which `throttles` is valid."""
        self.forgotten = False
        """Whether ReplicationState no longer has it."""
        self.in_sync = False
        """Whether it was caught_up at its last fetch."""
        self.omitted_since = 0.0
        """The time since which it is omitted from fetches; 0.0 if it is not."""
        self.behind_since = 0.0
        """The time since which it is throttled and not in sync; 0.0 if it is not."""
        self._seen_at = now
        self._session: FollowerSession | None = None
        """The last session in which the follower fetched it, while the session has it, and its item there."""
        self._item: FollowerItem | None = None
        self.offset = 0
        """The offset that the follower fetches next."""
        self.high_watermark = UNKNOWN
        """The last one that its leader reported on the same connection; UNKNOWN if none was reported."""
        self.batch_bytes = 0
        """The size of its batches, so that fetches end at a batch; 0 if unknown."""
        self.granted = 0
        """The bytes that the fetch in flight was granted; 0: none, or without a bound."""
        self.bytes = 0
        """The bytes fetched so far."""
        self._first_offset = UNKNOWN
        """The offset of the follower when `bytes` was 0."""
        self._measured_at = now
        """When `_inbound` was measured last, and the high watermark then."""
        self._measured_watermark = UNKNOWN
        self._inbound = 0.0
        """Messages per second that are produced to its partition."""

    @property
    def seen_at(self) -> float:
        """When its follower last fetched it."""
        return self._seen_at if self._session is None else self._session.seen_at

    def enter(self, session: FollowerSession, item: FollowerItem) -> None:
        """Note that the follower fetches it in this session. If another session has it, too, the values of
        this object change, so the next plan of that session decides about it anew.
        """
        if self._session is not None and self._item is not None and self._session is not session:
            self._session.again[self._item] = None
        self._session = session
        self._item = item

    def leave(self, item: FollowerItem) -> None:
        """Note that a session no longer has an item of the replica."""
        if self._item is item:
            self._seen_at = self.seen_at
            self._session = None
            self._item = None

    @property
    def caught_up(self) -> bool:
        """Whether it has fetched up to the last high watermark that its leader reported on this connection.
        False if none has been reported.
        """
        return self.high_watermark != UNKNOWN and self.offset >= self.high_watermark

    @property
    def lag(self) -> int:
        """The messages that it lacks; 0 if unknown."""
        return max(self.high_watermark - self.offset, 0)

    @property
    def starts(self) -> bool:
        """Whether it has fetched nothing yet."""
        return self.bytes == 0

    @property
    def message_bytes(self) -> float:
        """The average size of its messages; 0.0 if it has fetched none."""
        messages = self.offset - self._first_offset
        return self.bytes / messages if self._first_offset != UNKNOWN and messages > 0 else 0.0

    @property
    def inbound(self) -> float:
        """Bytes per second that are produced to its partition, estimated from its high watermark."""
        return self._inbound * self.message_bytes

    def see(self, item: FollowerItem, now: float) -> None:
        """Take the values of a fetch by its follower."""
        marks = item.marks
        if item.fetch_offset < self.offset or self._first_offset == UNKNOWN:
            # Its log was truncated, or created again.
            self._first_offset = item.fetch_offset
            self.bytes = 0
        self.offset = item.fetch_offset
        # If unknown on this connection, a value from another connection or leader would be out of date.
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
        """Omit it, because these throttles lack bytes for it."""
        for throttle in lacking:
            throttle.count_omission(now)
            if self.omitted_since == 0.0:
                throttle.omitted += 1
        if self.omitted_since == 0.0:
            self.omitted_since = now

    def got(self, size: int) -> None:
        """Count bytes that its follower got."""
        self.bytes += size
        # A broker sends one whole batch even if it exceeds the bound: more than the grant is one batch.
        if size > self.granted > 0 or size < self.batch_bytes:
            self.batch_bytes = size

    def got_nothing(self) -> None:
        """Note that it got nothing although it lacks messages: a batch is larger than the grant."""
        self.batch_bytes = self.granted * 2

    def fit(self, size: float) -> int:
        """Round a size down to whole batches, but to no less than one."""
        batch = self.batch_bytes
        if batch <= 0:
            return max(int(size), 1)
        return max(int(size) // batch, 1) * batch
