"""SessionPartition: what a client and its broker know of one partition of a fetch session."""

from typing import Final, final

from proxy.quota.fetch_plan import NO_BOUND, FetchItem
from proxy.wire.fetch_request import FetchEntry, with_max_bytes
from proxy.wire.fetch_rewrite import Watermarks

PROBE_BYTES: Final = 0
"""The partition_max_bytes of an omitted partition that is fetched for its watermarks only."""


@final
class SessionPartition:
    """One partition of a client's session."""

    __slots__ = ("at_broker", "entry", "item", "marks", "most")

    def __init__(self, entry: FetchEntry) -> None:
        self.entry = entry
        """As the client has sent it last."""
        self.marks: Watermarks | None = None
        """What the broker has said of it; None where nobody wants to know."""
        self.item: FetchItem | None = None
        """None if no quota may omit it."""
        self.at_broker = False
        """Whether the broker's session has it."""
        self.most = NO_BOUND
        """The partition_max_bytes with which the broker has it; NO_BOUND for the client's own."""

    @property
    def omitted(self) -> bool:
        return self.item is not None and self.item.omitted

    @property
    def probed(self) -> bool:
        """Whether the broker has it to report its watermarks only."""
        return self.at_broker and self.most == PROBE_BYTES

    def raw(self, version: int) -> bytes:
        """Its entry, as the broker is to get it now."""
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
    """Note the leader epoch under which the partition is requested from now on."""
    if marks.leader_epoch != entry.leader_epoch:
        marks.leader_epoch = entry.leader_epoch
        marks.outdated = True
