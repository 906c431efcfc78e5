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
never invents a high watermark.

What happens to partitions whose watermarks are unknown differs for consumers (ConsumerFetchSession) and
followers (FollowerFetchSession), as do the plans.
"""

from typing import Final

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.plan import FetchItem, FetchPlan
from proxy.quota.identity import Identity
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.relay.fetch.partition import SessionPartition
from proxy.wire.edit import i32
from proxy.wire.fetch.known_watermarks import Offsets
from proxy.wire.fetch.request import MAX_EPOCH, NO_BOUND, FetchEntry, FetchRequest, PartitionKey, write_topics
from proxy.wire.fetch.rewrite import FetchRewrite, Watermarks, empty_partition, write_partitions


class FetchSession:
    """What the sessions of consumers and followers share. A session is a client's session, or a request
    outside of any session, for as long as the request exists.
    """

    def __init__(
        self, engine: QuotaEngine, topics: OmittablePartitions, who: Identity, version: int, replica_id: int
    ) -> None:
        self._engine: Final = engine
        self._topics: Final = topics
        self._who: Final = who
        self.version: Final = version
        self.replica_id: Final = replica_id
        """The follower's node id; negative for a consumer."""
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
        """The partitions that a quota may omit. Each has an item."""
        self._unnamed: Final[dict[PartitionKey, SessionPartition]] = {}
        """The partitions whose topic names are not known yet, so that no quota could be asked."""
        self._changed: Final[dict[PartitionKey, SessionPartition]] = {}
        """The partitions of which the broker's session has no entry, or an old one; without those that it
        lacks because they are omitted.
        """
        self._forgotten: Final[dict[PartitionKey, None]] = {}
        """In order, the partitions that the broker's session has and the client's session no longer has."""
        self.watched: Final[dict[bytes, dict[int, Watermarks]]] = {}
        """The watermarks of the candidates, and of all partitions that a follower fetches; see FetchRewrite.
        """
        self._generation = engine.generation
        """QuotaEngine.generation for which the partitions are classified."""

    # What differs for consumers and followers

    def plan(self, now: float, answer_at: float) -> FetchPlan:
        """Ask the quotas which partitions to omit from a fetch, which has its response by `answer_at`."""
        raise NotImplementedError

    def end(self) -> None:
        """Give up what the quotas keep for the session, because it is over."""

    def reported(self, topic: bytes, number: int) -> None:
        """Note that the broker has reported something about a partition."""

    def _new_item(self, topic: str, key: PartitionKey, marks: Watermarks) -> FetchItem:
        """Return the item of a partition that a quota may omit."""
        raise NotImplementedError

    def _note(self, item: FetchItem) -> None:
        """Note that something about an item has changed."""

    def _drop(self, key: PartitionKey, partition: SessionPartition) -> None:
        """Remove a candidate."""
        del self._candidates[key]

    def _decided(self) -> list[SessionPartition]:
        """The candidates about which plans have decided since the last request to the broker."""
        raise NotImplementedError

    def _requests_marks(self, partition: SessionPartition) -> bool:
        """Whether an incremental request names an omitted partition, for its watermarks."""
        return False

    def _requests_unknown(self, partition: SessionPartition) -> bool:
        """Whether a full request names an omitted partition whose watermarks are unknown."""
        raise NotImplementedError

    def _offsets(self, item: FetchItem, entry: FetchEntry) -> Offsets | None:
        """The watermarks for a partition without records; None if they are unknown."""
        return item.marks.offsets

    def _told(self) -> None:
        """Note that the request brings the broker's session in line with the last plan."""
        self._changed.clear()

    # What the client says

    def update(self, request: FetchRequest, known: "FetchSession | None" = None) -> None:
        """Take a request of this session. `known` may have watermarks of the same partitions."""
        self.take(request, 0, len(request.entries), known)
        self.taken(request, known)

    def take(self, request: FetchRequest, first: int, until: int, known: "FetchSession | None") -> None:
        """Take some of the partitions that a request names: those from the index `first` to `until`."""
        at = first
        while at < until:
            entry = request.entries[at]
            at += 1
            key = (entry.topic, entry.partition)
            partition = self._partitions.get(key)
            if partition is None:
                partition = SessionPartition(entry)
                self._partitions[key] = partition
                if key in self._forgotten:
                    del self._forgotten[key]
                    partition.at_broker = True
                self._classify(key, partition, None if known is None else known.marks(key))
            else:
                partition.entry = entry
            item = partition.item
            if item is not None:
                item.fetch_offset = entry.fetch_offset
                item.max_bytes = entry.max_bytes
                self._note(item)
            self._changed[key] = partition

    def taken(self, request: FetchRequest, known: "FetchSession | None") -> None:
        """Take the rest of a request, after all of its partitions."""
        for key in request.forgotten:
            self._forget(key)

    def _forget(self, key: PartitionKey) -> None:
        partition = self._partitions.pop(key, None)
        if partition is None:
            return
        if partition.at_broker:
            self._forgotten[key] = None
        self._changed.pop(key, None)
        self._unnamed.pop(key, None)
        if partition.item is not None:
            self._drop(key, partition)
        self._unwatch(key)

    @property
    def size(self) -> int:
        """The number of partitions that the client fetches."""
        return len(self._partitions)

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
            item = self._new_item(topic, key, self._watch(key, partition, marks))
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
            if key in self._unnamed:
                continue
            if partition.item is None:
                self._classify(key, partition, None)
            elif not self._topics.find(key, self.version, self.replica_id, self._who):
                self._drop(key, partition)
                partition.item = None
                if partition.most != NO_BOUND or not partition.at_broker:
                    self._changed[key] = partition

    # Requests to the broker

    def nothing_left(self, plan: FetchPlan) -> bool:
        """Whether the plan omits all partitions of the client, and no watermarks have to be requested."""
        return plan.omitted > 0 and len(self._partitions) == plan.omitted

    def incremental(self) -> bytes:
        """Return the topics and forgotten_topics_data of a request that brings the broker's session in line
        with the last plan. From here on, the broker's session is assumed to be so.
        """
        entries: dict[bytes, list[bytes]] = {}
        forgotten: dict[bytes, list[bytes]] = {}
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
        if not partition.omitted or self._requests_marks(partition):
            entries.setdefault(key[0], []).append(partition.raw(self.version))
        elif partition.at_broker:
            partition.at_broker = False
            forgotten.setdefault(key[0], []).append(i32(key[1]))

    def full(self, rewrite: FetchRewrite) -> bytes | None:
        """Return the topics of a request that names all partitions that the last plan includes. Omitted
        partitions are added to `rewrite`.

        None if there is nothing to request although the client fetches partitions.
        """
        entries: dict[bytes, list[bytes]] = {}
        added: dict[bytes, list[bytes]] = {}
        self._told()
        for key, partition in self._partitions.items():
            item = partition.item
            offsets: Offsets | None = None
            if item is not None and item.omitted:
                offsets = self._offsets(item, partition.entry)
            if offsets is not None:
                partition.at_broker = False
                added.setdefault(key[0], []).append(empty_partition(self.version, key[1], offsets))
            elif not partition.omitted or self._requests_unknown(partition):
                entries.setdefault(key[0], []).append(partition.raw(self.version))
        rewrite.added_topics = len(added)
        rewrite.added = write_partitions(self.version, added)
        return write_topics(self.version, entries, {}) if entries or not added else None

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
