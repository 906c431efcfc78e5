"""RecordLocks: for how long quotas may stop a share consumer that has records to acknowledge (KIP-932).

A broker locks the records of a ShareFetch response for the consumer. If the consumer cannot acknowledge them
in time, others get them again. So a response with records mutes nobody: the next ShareFetch waits for the
debt, or gets no records. From then on, a wait that a ShareFetch causes lasts at most a part of the time for
which records are locked.
"""

from typing import Final, final

PART: Final = 0.25
"""The part of the lock's time that a wait may take. Two waits may follow each other, that of a ShareFetch and
the mute after its response, and the consumer needs time to process the records.
"""
UNLIMITED_SECONDS: Final = 1e9
"""The longest wait of a connection that has no records to acknowledge: as good as no limit."""


@final
class RecordLocks:
    """The locks of one connection. The broker states their time in each response, so it is known exactly."""

    __slots__ = ("longest_wait",)

    def __init__(self) -> None:
        self.longest_wait = UNLIMITED_SECONDS
        """The longest wait, in seconds, that a ShareFetch may cause."""

    def deliver(self, lock_ms: int) -> None:
        """Note that the client gets records, which are locked for so long."""
        self.longest_wait = lock_ms / 1000.0 * PART
