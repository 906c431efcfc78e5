"""RequestBuffer: large requests that are read only when they are complete.

A Produce request, or one that the proxy answers, uses memory that connections share, and waits if there is
none. Each connection has its own memory for fetches, up to MAX_BUFFERED_FRAME_BYTES;
limits.max_list_request_bytes bounds these.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.relay.budgets.large_frames import LargeFrame, LargeFrames
from proxy.relay.close_reasons import SLOW_REQUEST, RelayError
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES, FrameBuffer
from proxy.relay.intercepted import max_request_bytes
from proxy.relay.login.authentication import Authentication
from proxy.relay.output import RelayOutput
from proxy.relay.requests.interception import covers
from proxy.wire.api_keys import FETCH, PRODUCE, SHARE_FETCH
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.frames import CUT_THROUGH_BYTES, Frame
from proxy.wire.reader import Reader

LARGE_FRAME_SECONDS: Final = 30.0
"""A request must arrive within this time if others wait for memory. By default, clients wait no longer for a
response (request.timeout.ms), and their time begins when they send the request.
"""


@final
class RequestBuffer:
    """The buffer of one connection, for one request at a time."""

    def __init__(
        self,
        engine: QuotaEngine,
        output: RelayOutput,
        authentication: Authentication | None,
        intercepted_api_keys: frozenset[int],
        large_frames: LargeFrames,
    ) -> None:
        self.due_at = 0.0
        """When the request asks for memory again, or must be complete; 0.0 for never."""
        self._engine: Final = engine
        self._output: Final = output
        self._authentication: Final = authentication
        self._intercepted_api_keys: Final = intercepted_api_keys
        self._parts: FrameBuffer | None = None
        """None before the first large request."""
        self._large_frames: Final = large_frames
        self._large: LargeFrame | None = None
        """The shared memory of a request; None before the first one that is large."""
        self.shared = False
        """Whether the request uses shared memory, and forwarded_large() is due."""
        self._first_part: Frame | None = None
        """The first part of the request that waits for memory."""

    def takes(self, part: Frame, reads_fetches: bool) -> bool:
        """Whether a large request is read only when it is complete, because the proxy answers it or a quota
        may remove partitions from it. `reads_fetches`: whether fetches are read beyond their bounds.
        """
        authentication = self._authentication
        if authentication is not None and (authentication.raw or not authentication.done):
            return False
        api_key = _api_key(part)
        if api_key == PRODUCE:
            # A smaller one streams: its first part has come when no quota rejected partitions.
            return self._engine.rejects and part.size > CUT_THROUGH_BYTES
        if part.size > MAX_BUFFERED_FRAME_BYTES:
            return False
        if api_key == FETCH:
            return reads_fetches or self._engine.limits_fetches
        if api_key == SHARE_FETCH:
            return self._engine.limits_fetches
        answered = covers(self._engine, self._intercepted_api_keys, api_key)
        limited = answered or self._engine.intercepts_limited(api_key)
        return limited and part.size <= max_request_bytes(api_key)

    def begin(self, part: Frame, who: Identity, now: float) -> bool:
        """Take the first part of a client's request. Return False if it waits for memory, until `due_at`."""
        self.due_at = 0.0
        self.shared = False
        if _api_key(part) not in (FETCH, SHARE_FETCH):
            large = self._large
            if large is None:
                large = self._large = LargeFrame(self._large_frames)
            if not large.reserve(part.size, who):
                self._first_part = part
                self.due_at = now + large.retry_seconds
                return False
            self.due_at = now + LARGE_FRAME_SECONDS
            self.shared = True
        if self._parts is None:
            self._parts = FrameBuffer()
        self._parts.add(part)
        return True

    def add(self, part: Frame) -> Frame | None:
        """Take the next part. Return the request if it is complete."""
        assert self._parts is not None, "begin() has taken the first part"
        return self._parts.add(part)

    def take_waiting(self) -> Frame:
        """Return the first part of the request that waits for memory. Call begin() or leave_line() next."""
        part = self._first_part
        assert part is not None, "it waits"
        self._first_part = None
        return part

    def leave_line(self) -> None:
        """End the wait for memory."""
        if self._large is not None:
            self._large.leave()

    def check_pace(self, now: float) -> None:
        """Raise RelayError if others wait for the memory of a request that has not arrived in time."""
        large = self._large
        if large is not None and large.wanted:
            raise RelayError(
                SLOW_REQUEST,
                f"a request of {large.size} bytes has not arrived within {LARGE_FRAME_SECONDS:g} s, "
                "and other large requests wait for its memory",
            )
        self.due_at = now + 1.0

    def forwarded_large(self) -> None:
        """Return the memory as soon as the broker has accepted the large request that has just been read."""
        self.shared = False
        self._output.holds_memory = True
        if not self._output.to_broker:
            self.give_memory_back()

    def give_memory_back(self) -> None:
        """Note that no bytes for the broker wait to be sent."""
        if self._output.holds_memory:
            self._output.holds_memory = False
            self._output.forget_to_broker()
            if self._large is not None:
                self._large.give_back()

    def end(self) -> None:
        """Give back the memory, because the connection is over."""
        if self._large is not None:
            self._large.leave()
            self._large.give_back()


def _api_key(part: Frame) -> int:
    """The api_key of a request whose first part has arrived."""
    return Reader(part.pieces, LENGTH_SIZE).i16()
