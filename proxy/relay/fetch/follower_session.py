"""FollowerFetchSession: a follower's partitions and those that quotas omit.

A follower's replica is in sync depending on its high watermark, which must come from the same connection. So
the watermarks of all its partitions are kept. An omitted partition whose watermarks are unknown is requested
with a partition_max_bytes of 0: in a full request also if the watermarks are of an earlier leader epoch, and
inside a session before its first watermark is known. The broker responds to such a probe at once, so a
replica that turns out to be in sync does not wait.
"""

from typing import Final, cast, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan
from proxy.quota.fetch.plan import FetchItem, FetchPlan
from proxy.quota.identity import Identity
from proxy.relay.fetch.follower_plans import FollowerPlans
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.relay.fetch.partition import SessionPartition
from proxy.relay.fetch.session import FetchSession
from proxy.wire.fetch.known_watermarks import Offsets
from proxy.wire.fetch.request import FetchEntry, PartitionKey
from proxy.wire.fetch.rewrite import UNKNOWN, Watermarks


@final
class FollowerFetchSession(FetchSession):
    """The session of a follower. A plan is about the partitions about which something has changed."""

    def __init__(
        self, engine: QuotaEngine, topics: OmittablePartitions, who: Identity, version: int, replica_id: int
    ) -> None:
        super().__init__(engine, topics, who, version, replica_id)
        self._plans: Final = FollowerPlans()
        self.probes = 0
        """The number of omitted partitions whose watermarks the request after the last plan asks for."""

    def lag(self) -> int:
        """The number of messages that the follower lacks, by the broker's reports."""
        lag = 0
        for partition in self._partitions.values():
            marks = partition.marks
            if marks is not None:
                lag += max(marks.high_watermark - partition.entry.fetch_offset, 0)
        return lag

    def reported(self, topic: bytes, number: int) -> None:
        """Note that the broker has reported something about a partition."""
        if self._candidates:
            partition = self._candidates.get((topic, number))
            if partition is not None:
                self._plans.note(_item(partition))

    def _classify(self, key: PartitionKey, partition: SessionPartition, marks: Watermarks | None) -> None:
        self._watch(key, partition, marks)
        super()._classify(key, partition, marks)

    def _new_item(self, topic: str, key: PartitionKey, marks: Watermarks) -> FetchItem:
        return FollowerItem(topic, key[1], self.replica_id, marks, key)

    def _note(self, item: FetchItem) -> None:
        self._plans.note(cast("FollowerItem", item))

    def _drop(self, key: PartitionKey, partition: SessionPartition) -> None:
        super()._drop(key, partition)
        self._plans.drop(_item(partition))

    def plan(self, now: float, answer_at: float) -> FollowerPlan:
        """Ask the quotas which partitions to omit from a fetch, which has its response by `answer_at`."""
        self._reclassify()
        self.probes = 0
        any_items = len(self._candidates) > 0
        return self._plans.plan(self._engine, self._who, now, any_items=any_items)

    def _decided(self) -> list[SessionPartition]:
        return [self._candidates[key] for key in self._plans.decided]

    def _told(self) -> None:
        super()._told()
        self._plans.decided.clear()

    def nothing_left(self, plan: FetchPlan) -> bool:
        """Whether the plan omits all partitions of the follower, and no watermarks have to be requested."""
        return super().nothing_left(plan) and not any(self._lacks_marks(each) for each in self._decided())

    def _lacks_marks(self, partition: SessionPartition) -> bool:
        """Whether the watermarks of an omitted partition have to be requested."""
        return _item(partition).marks.high_watermark == UNKNOWN and not partition.probed

    def _requests_marks(self, partition: SessionPartition) -> bool:
        if not self._lacks_marks(partition):
            return False
        self._probe(partition)
        return True

    def _requests_unknown(self, partition: SessionPartition) -> bool:
        self._probe(partition)
        return True

    def _probe(self, partition: SessionPartition) -> None:
        """Count a partition whose watermarks the request asks for. The next plan decides about it anew, even
        if the broker does not report them.
        """
        self.probes += 1
        self._plans.note(_item(partition))

    def _offsets(self, item: FetchItem, entry: FetchEntry) -> Offsets | None:
        """The watermarks for a partition without records; None if they are not of its leader epoch."""
        return item.marks.offsets if item.marks.leader_epoch == entry.leader_epoch else None


def _item(candidate: SessionPartition) -> FollowerItem:
    return cast("FollowerItem", candidate.item)
