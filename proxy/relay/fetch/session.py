"""FetchSession: the partitions of an incremental fetch (KIP-227), and those that quotas omit.

The client's session has every partition that the client fetches. The broker's session lacks those that quotas
omit. The client does not notice this, because an incremental response may always lack partitions. The relay
removes a partition from the broker's session with forgotten_topics_data. To add it again, the relay uses the
last entry that the client has sent for it.

The broker's session never becomes empty, because a broker closes an empty session and responds at once. If
everything is omitted, the relay does not forward the request. The client's session and the broker's session
therefore have separate epochs.

A request that opens a session, or that is outside of any session, names all its partitions, and the response
must have each of them. The relay omits a partition from such a request only if the broker has reported its
watermarks before. The response then has the partition with these watermarks and without records, so the relay
never invents a high watermark. The watermarks that a broker reports to one consumer are valid for all
(KnownWatermarks). If none are known, a consumer's fetch waits: a request for the partition would return a
batch of it, whatever its partition_max_bytes. A follower's watermarks must come from the same connection and
leader epoch; otherwise its partition is requested with a partition_max_bytes of 0.

A follower's replica is in sync depending on its high watermark. If a follower's partition is omitted before
its first watermark is known, the relay therefore requests it in the same way inside a session. The broker
responds to such a probe at once, so a replica that turns out to be in sync does not wait.
"""

from typing import Final, final

from proxy.quota.consumer_plan import ConsumerPlan
from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch_plan import FetchItem, FetchPlan
from proxy.quota.identity import Identity
from proxy.relay.fetch.follower_plans import FollowerPlans
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.relay.fetch.partition import SessionPartition
from proxy.wire.edit import i32
from proxy.wire.fetch_request import MAX_EPOCH, NO_BOUND, FetchEntry, FetchRequest, PartitionKey, write_topics
from proxy.wire.fetch_rewrite import UNKNOWN, FetchRewrite, Watermarks, empty_partition, write_partitions
from proxy.wire.known_watermarks import Offsets


@final
class FetchSession:
    """A client's session, or a request outside of any session, for as long as the request exists."""

    def __init__(
        self, engine: QuotaEngine, topics: OmittablePartitions, who: Identity, version: int, replica_id: int
    ) -> None:
        self._engine: Final = engine
        self._topics: Final = topics
        self._who: Final = who
        self.version: Final = version
        self.replica_id: Final = replica_id
        """The follower's node id; -1 for a consumer."""
        self.client_id = 0
        """The session's id at the client, and at the broker."""
        self.broker_id = 0
        self.client_epoch = 1
        """The epoch that the next request of the client must have, and that of the next request to the
        broker.
        """
        self.broker_epoch = 1
        self.broken = False
        """Whether the broker has rejected a request of this session, so that the client must open a new one.
        """
        self._partitions: Final[dict[PartitionKey, SessionPartition]] = {}
        self._candidates: Final[dict[PartitionKey, SessionPartition]] = {}
        """The partitions that a quota may omit."""
        self._unnamed: Final[dict[PartitionKey, SessionPartition]] = {}
        """The partitions whose topic names are not known yet, so that no quota could be asked."""
        self._changed: Final[dict[PartitionKey, SessionPartition]] = {}
        """The partitions of which the broker's session has no entry, or an old one; without those that it
        lacks because they are omitted.
        """
        self._plans: Final = FollowerPlans() if replica_id >= 0 else None
        self._forgotten: Final[dict[PartitionKey, None]] = {}
        """In order, the partitions that the broker's session has and the client's session no longer has."""
        self.watched: Final[dict[bytes, dict[int, Watermarks]]] = {}
        """The watermarks of the candidates, and of all partitions that a follower fetches; see FetchRewrite.
        """
        self.unknown = 0
        """Number of a consumer's omitted partitions without known watermarks."""
        self.probes = 0
        """Number of omitted partitions whose watermarks the last request asks the broker for."""
        self._generation = engine.generation
        """QuotaEngine.generation for which the partitions are classified."""
        self._turn = 0
        """The index of the candidate with which a consumer's next plan begins."""

    # What the client says

    def update(self, request: FetchRequest, known: "FetchSession | None" = None) -> None:
        """Take a request of this session. `known` may have watermarks of the same partitions."""
        for entry in request.entries:
            key = (entry.topic, entry.partition)
            partition = self._partitions.get(key)
            if partition is None:
                partition = SessionPartition(entry)
                self._partitions[key] = partition
                if key in self._forgotten:
                    del self._forgotten[key]
                    partition.at_broker = True
                marks = None if known is None else known.marks(key)
                if self.replica_id >= 0:
                    self._watch(key, partition, marks)
                self._classify(key, partition, marks)
                if known is not None:
                    known.hand_over(key, partition)
            else:
                partition.entry = entry
            item = partition.item
            if item is not None:
                item.fetch_offset = entry.fetch_offset
                item.max_bytes = entry.max_bytes
                self._note(item)
            self._changed[key] = partition
        for key in request.forgotten:
            self._forget(key)

    def hand_over(self, key: PartitionKey, partition: SessionPartition) -> None:
        """Give the reservations of this request's partitions to the client's next request."""
        earlier = self._partitions.get(key)
        if earlier is not None and earlier.item is not None and partition.item is not None:
            partition.item.take_tickets(earlier.item)

    def end(self) -> None:
        """Give up the places of its partitions in queues, because the session is over."""
        for partition in self._candidates.values():
            if partition.item is not None:
                partition.item.end()

    def _forget(self, key: PartitionKey) -> None:
        partition = self._partitions.pop(key, None)
        if partition is None:
            return
        if partition.at_broker:
            self._forgotten[key] = None
        self._changed.pop(key, None)
        self._unnamed.pop(key, None)
        if partition.item is not None:
            partition.item.end()
            self._drop(key, partition.item)
        self._unwatch(key)

    def _note(self, item: FetchItem) -> None:
        """Note that something about an item has changed."""
        if self._plans is not None:
            self._plans.note(item)

    def _drop(self, key: PartitionKey, item: FetchItem) -> None:
        """Remove a candidate."""
        del self._candidates[key]
        if self._plans is not None:
            self._plans.drop(item)

    def reported(self, topic: bytes, number: int) -> None:
        """Note that the broker has reported something about a partition."""
        if self._plans is not None and self._candidates:
            partition = self._candidates.get((topic, number))
            if partition is not None and partition.item is not None:
                self._plans.note(partition.item)

    @property
    def size(self) -> int:
        """The number of partitions that the client fetches."""
        return len(self._partitions)

    def lag(self) -> int:
        """The number of messages that the client lacks, by the broker's reports; 0 for a consumer."""
        lag = 0
        for partition in self._partitions.values():
            marks = partition.marks
            if marks is not None:
                lag += max(marks.high_watermark - partition.entry.fetch_offset, 0)
        return lag

    def marks(self, key: PartitionKey) -> Watermarks | None:
        """The watermarks of a partition that the broker has reported, if a plan needed them."""
        topic, number = key
        partitions = self.watched.get(topic)
        return None if partitions is None else partitions.get(number)

    def _watch(self, key: PartitionKey, partition: SessionPartition, marks: Watermarks | None) -> Watermarks:
        """Note what the broker reports of a partition; `marks` are its earlier watermarks."""
        if partition.marks is not None:
            return partition.marks
        watched = Watermarks() if marks is None else marks
        partition.marks = watched
        self.watched.setdefault(key[0], {})[key[1]] = watched
        return watched

    def _unwatch(self, key: PartitionKey) -> None:
        partitions = self.watched.get(key[0])
        if partitions is not None:
            partitions.pop(key[1], None)
            if not partitions:
                del self.watched[key[0]]

    # Which partitions quotas limit

    def _classify(self, key: PartitionKey, partition: SessionPartition, marks: Watermarks | None) -> None:
        """Find out whether a quota may omit a partition."""
        topic = self._topics.find(key, self.version, self.replica_id, self._who)
        if topic is None:
            self._unnamed[key] = partition
        elif topic:
            watched = self._watch(key, partition, marks)
            if self.replica_id < 0:
                watched.known = self._engine.known_watermarks
                watched.topic = topic
                watched.partition = key[1]
            item = FetchItem(topic, key[1], self.replica_id, watched, key)
            item.fetch_offset = partition.entry.fetch_offset
            item.max_bytes = partition.entry.max_bytes
            partition.item = item
            self._candidates[key] = partition
            self._note(item)

    def _reclassify(self) -> None:
        """Ask again about partitions, after limits have changed or topic names have become known."""
        if self._unnamed:
            unnamed = list(self._unnamed.items())
            self._unnamed.clear()
            for key, partition in unnamed:
                self._classify(key, partition, None)
        if self._generation == self._engine.generation:
            return
        self._generation = self._engine.generation
        for key, partition in self._partitions.items():
            item = partition.item
            if key in self._unnamed:
                continue
            if item is None:
                self._classify(key, partition, None)
            elif not self._topics.find(key, self.version, self.replica_id, self._who):
                self._drop(key, item)
                partition.item = None
                if self.replica_id < 0:
                    partition.marks = None
                    self._unwatch(key)
                if partition.most != NO_BOUND or not partition.at_broker:
                    self._changed[key] = partition

    def awaits_names(self) -> bool:
        """Whether topic names that a quota needs have been requested."""
        return any(self._topics.awaits(key) for key in self._unnamed)

    # Requests to the broker

    @property
    def planned(self) -> int:
        """The number of partitions that a quota may omit: a consumer's plan has all of them."""
        return len(self._candidates)

    def plan(self, now: float, answer_at: float) -> FetchPlan:
        """Ask the quotas which partitions to omit from a fetch, which has its response by `answer_at`."""
        self._reclassify()
        if self._plans is not None:
            any_items = len(self._candidates) > 0
            return self._plans.plan(self._engine, self._who, now, any_items=any_items)
        items = [partition.item for partition in self._candidates.values() if partition.item is not None]
        turn = self._turn % len(items) if items else 0
        plan = ConsumerPlan(items[turn:] + items[:turn], answer_at)
        if items:
            self._engine.plan_consumer_fetch(plan, self._who, now)
        if plan.omitted:
            self._turn = turn + plan.served()
        return plan

    def _decided(self) -> list[SessionPartition]:
        """The candidates about which plans have decided since the last request to the broker."""
        if self._plans is None:
            return list(self._candidates.values())
        return [self._candidates[key] for key in self._plans.decided]

    def nothing_left(self, plan: FetchPlan) -> bool:
        """Whether the plan omits all partitions of the client, and no watermarks have to be requested."""
        if plan.omitted == 0 or len(self._partitions) != plan.omitted:
            return False
        return self._plans is None or not any(self._lacks_marks(each) for each in self._decided())

    def _lacks_marks(self, partition: SessionPartition) -> bool:
        """Whether an omitted partition is a follower's, and its watermarks have to be requested."""
        item = partition.item
        if item is None or self.replica_id < 0 or item.marks.high_watermark != UNKNOWN:
            return False
        return not partition.probed

    def incremental(self) -> bytes:
        """Return the topics and forgotten_topics_data of a request that brings the broker's session in line
        with the last plan. From here on, the broker's session is assumed to be so.
        """
        entries: dict[bytes, list[bytes]] = {}
        forgotten: dict[bytes, list[bytes]] = {}
        self.probes = 0
        for partition in self._decided():
            item = partition.item
            if item is None or item.key in self._changed:
                continue
            if item.omitted or not partition.at_broker or partition.most != item.bound:
                self._tell(item.key, partition, entries, forgotten)
        for key, partition in self._changed.items():
            self._tell(key, partition, entries, forgotten)
        self._told()
        for key in self._forgotten:
            forgotten.setdefault(key[0], []).append(i32(key[1]))
        self._forgotten.clear()
        return write_topics(self.version, entries, forgotten)

    def _tell(
        self,
        key: PartitionKey,
        partition: SessionPartition,
        entries: dict[bytes, list[bytes]],
        forgotten: dict[bytes, list[bytes]],
    ) -> None:
        """Add a partition to a request: its entry, or that the broker's session no longer has it."""
        if not partition.omitted:
            entries.setdefault(key[0], []).append(partition.raw(self.version))
        elif self._lacks_marks(partition):
            self._probe(partition)
            entries.setdefault(key[0], []).append(partition.raw(self.version))
        elif partition.at_broker:
            partition.at_broker = False
            forgotten.setdefault(key[0], []).append(i32(key[1]))

    def _probe(self, partition: SessionPartition) -> None:
        """Count a partition whose watermarks the request asks for. The next plan decides about it anew, even
        if the broker does not report them.
        """
        self.probes += 1
        if partition.item is not None:
            self._note(partition.item)

    def _told(self) -> None:
        """Note that the request brings the broker's session in line with the last plan."""
        self._changed.clear()
        if self._plans is not None:
            self._plans.decided.clear()

    def full(self, rewrite: FetchRewrite) -> bytes | None:
        """Return the topics of a request that names all partitions that the last plan includes, and those of
        a follower whose watermarks have to be requested. Omitted partitions are added to `rewrite`.

        None if there is nothing to request although the client fetches partitions, or if the watermarks of a
        consumer's omitted partition are unknown.
        """
        entries: dict[bytes, list[bytes]] = {}
        added: dict[bytes, list[bytes]] = {}
        self.probes = 0
        self.unknown = 0
        self._told()
        for key, partition in self._partitions.items():
            item = partition.item
            offsets: Offsets | None = None
            if item is not None and item.omitted:
                offsets = self._offsets(item, partition.entry)
            if offsets is not None:
                partition.at_broker = False
                added.setdefault(key[0], []).append(empty_partition(self.version, key[1], offsets))
            elif self.replica_id < 0 and partition.omitted:
                self.unknown += 1
            else:
                if partition.omitted:
                    self._probe(partition)
                entries.setdefault(key[0], []).append(partition.raw(self.version))
        rewrite.added_topics = len(added)
        rewrite.added = write_partitions(self.version, added)
        if self.unknown > 0:
            return None
        return write_topics(self.version, entries, {}) if entries or not added else None

    def _offsets(self, item: FetchItem, entry: FetchEntry) -> Offsets | None:
        """The watermarks for a partition without records. A follower's must belong to its leader epoch."""
        if self.replica_id >= 0 and item.marks.leader_epoch != entry.leader_epoch:
            return None
        return item.marks.offsets

    def next_broker_epoch(self) -> int:
        """The epoch of the next request to the broker."""
        epoch = self.broker_epoch
        self.broker_epoch = _after(epoch)
        return epoch

    def advance_client(self) -> None:
        """Note that the client has sent the request whose turn it was."""
        self.client_epoch = _after(self.client_epoch)


def _after(epoch: int) -> int:
    return 1 if epoch == MAX_EPOCH else epoch + 1
