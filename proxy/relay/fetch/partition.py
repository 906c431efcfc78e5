"""SessionPartition: the state of one partition of a fetch session, at the client and at the broker."""

from typing import Final, final

from proxy.quota.fetch.plan import FetchItem
from proxy.wire.fetch.request import NO_BOUND, FetchEntry, with_max_bytes
from proxy.wire.fetch.rewrite import Watermarks

PROBE_BYTES: Final = 0
"""The partition_max_bytes of an omitted partition that is requested only for its watermarks."""


@final
class SessionPartition:
    """One partition of a client's session."""

    __slots__ = ("at_broker", "entry", "item", "marks", "most")

    def __init__(self, entry: FetchEntry) -> None:
        self.entry = entry
        """The partition's last entry from the client."""
        self.marks: Watermarks | None = None
        """The watermarks that the broker has reported; None if no quota needs them."""
        self.item: FetchItem | None = None
        """What the quotas see of it; None if no quota may omit it."""
        self.at_broker = False
        """Whether the broker's session has it."""
        self.most = NO_BOUND
        """The partition_max_bytes in the broker's session; NO_BOUND for the client's own value."""

    @property
    def omitted(self) -> bool:
        return self.item is not None and self.item.omitted

    @property
    def probed(self) -> bool:
        """Whether the broker's session has the partition only to report its watermarks."""
        return self.at_broker and self.most == PROBE_BYTES

    def raw(self, version: int) -> bytes:
        """The partition's entry for the next request to the broker."""
        if self.marks is not None:
            _expect(self.marks, self.entry)
        item = self.item
        if item is not None:
            self.most = PROBE_BYTES if item.omitted else item.bound
        else:
            self.most = NO_BOUND
        self.at_broker = True
        raw = self.entry.raw
        return raw if self.most == NO_BOUND else with_max_bytes(raw, version, self.most)


def _expect(marks: Watermarks, entry: FetchEntry) -> None:
    """Note the leader epoch with which the partition is requested from here on."""
    if marks.leader_epoch != entry.leader_epoch:
        marks.leader_epoch = entry.leader_epoch
        marks.outdated = True
