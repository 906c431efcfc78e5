"""FetchSession: the partitions that an incremental fetch stands for (KIP-227), and those that quotas omit.

The client's session has every partition that the client fetches; the broker's lacks those that quotas omit.
The client does not notice, because an incremental response may always lack partitions. The relay removes a
partition from the broker's session with forgotten_topics_data, and adds it again with the latest entry that
the client has sent for it, which is remembered here.

The broker's session never becomes empty, because a broker closes an empty session and responds at once. The
relay does not forward a request from which everything is omitted, so each side has epochs of its own.

A request outside any session, or one that opens a session, names all its partitions, and the response must
have each of them. The relay omits a partition from such a request only if the broker has told its watermarks
before. The response then has the partition with these watermarks and without records, so no high watermark is
ever made up. What a broker tells one consumer holds for all (KnownWatermarks). If nothing is known, a
consumer's fetch waits: to request the partition would bring a batch of it, whatever the partition_max_bytes.
A follower's watermarks must come from the same connection and leader epoch; otherwise its partition is
requested with a partition_max_bytes of 0.

Whether a follower's replica is in sync depends on its high watermark. So a follower's partition that is
omitted before its first watermark is requested in the same way inside a session. The broker responds to such
a probe at once, because a replica that turns out to be in sync must not wait.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch_plan import NO_BOUND, FetchItem, FetchPlan
from proxy.quota.identity import Identity
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.relay.fetch.partition import SessionPartition
from proxy.wire.edit import i32
from proxy.wire.fetch_request import MAX_EPOCH, FetchEntry, FetchRequest, PartitionKey, write_topics
from proxy.wire.fetch_rewrite import UNKNOWN, FetchRewrite, Watermarks, empty_partition, write_partitions
from proxy.wire.known_watermarks import Offsets


@final
class FetchSession:
    """A client's session, or a request outside any: then it lives as long as that request."""

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
        """The session's id as the client has it, and as the broker has it."""
        self.broker_id = 0
        self.client_epoch = 1
        """The epoch that the client's next request has to have, and that of the next to the broker."""
        self.broker_epoch = 1
        self.broken = False
        """Whether the broker has rejected a request of this session: the client has to start a new one."""
        self._partitions: Final[dict[PartitionKey, SessionPartition]] = {}
        self._candidates: Final[dict[PartitionKey, SessionPartition]] = {}
        """Those that a quota may omit."""
        self._unnamed: Final[dict[PartitionKey, SessionPartition]] = {}
        """Those whose topics' names are not known yet, so that no quota could be asked."""
        self._changed: Final[dict[PartitionKey, SessionPartition]] = {}
        """Those of which the broker has no entry, or an old one."""
        self._forgotten: Final[dict[PartitionKey, None]] = {}
        """Those that the broker's session has, and the client's no more, in order."""
        self.watched: Final[dict[bytes, dict[int, Watermarks]]] = {}
        """The watermarks of the candidates, and of all that a follower fetches; see FetchRewrite."""
        self.unknown = 0
        """Of how many omitted partitions of a consumer no watermarks are known."""
        self.probes = 0
        """Of how many omitted partitions the last request for the broker asks for the watermarks."""
        self._generation = engine.generation
        self._turn = 0

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
            self._changed[key] = partition
        for key in request.forgotten:
            self._forget(key)

    def hand_over(self, key: PartitionKey, partition: SessionPartition) -> None:
        """Let a partition of the client's next request have what is reserved for it here."""
        earlier = self._partitions.get(key)
        if earlier is not None and earlier.item is not None and partition.item is not None:
            partition.item.take_ticket(earlier.item)

    def end(self) -> None:
        """The session is over."""
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
        if self._candidates.pop(key, None) is not None and partition.item is not None:
            partition.item.end()
        self._unwatch(key)

    @property
    def size(self) -> int:
        """How many partitions the client fetches."""
        return len(self._partitions)

    def lag(self) -> int:
        """Messages that the client lacks, as far as its broker has told; nothing is known of a consumer's."""
        lag = 0
        for partition in self._partitions.values():
            marks = partition.marks
            if marks is not None:
                lag += max(marks.high_watermark - partition.entry.fetch_offset, 0)
        return lag

    def marks(self, key: PartitionKey) -> Watermarks | None:
        """What the broker has said of a partition, if a plan needed it."""
        topic, number = key
        partitions = self.watched.get(topic)
        return None if partitions is None else partitions.get(number)

    def _watch(self, key: PartitionKey, partition: SessionPartition, marks: Watermarks | None) -> Watermarks:
        """Note what the broker says of a partition; `marks` is what it has said before."""
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

    # Which partitions quotas are about

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
            item = FetchItem(topic, key[1], self.replica_id, watched)
            item.fetch_offset = partition.entry.fetch_offset
            item.max_bytes = partition.entry.max_bytes
            partition.item = item
            self._candidates[key] = partition

    def _reclassify(self) -> None:
        """Other limits, or topics whose names have become known, may concern other partitions."""
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
                del self._candidates[key]
                partition.item = None
                if self.replica_id < 0:
                    partition.marks = None
                    self._unwatch(key)
                if partition.most != NO_BOUND or not partition.at_broker:
                    self._changed[key] = partition

    def awaits_names(self) -> bool:
        """Whether the names of topics are on their way of which no quota could be asked without."""
        return any(self._topics.awaits(key) for key in self._unnamed)

    # What the broker gets

    def plan(self, now: float) -> FetchPlan:
        """Ask the quotas what has to stay out now."""
        self._reclassify()
        items = [partition.item for partition in self._candidates.values() if partition.item is not None]
        turn = self._turn % len(items) if items else 0
        plan = FetchPlan(self.replica_id, items[turn:] + items[:turn])
        if items:
            self._engine.plan_fetch(plan, self._who, now)
        if plan.omitted:
            self._turn = turn + _served(plan.items)
        return plan

    def nothing_left(self, plan: FetchPlan) -> bool:
        """Whether the plan omits everything that the client wants, and the broker need not be asked for
        watermarks.
        """
        if plan.omitted == 0 or len(self._partitions) != plan.omitted:
            return False
        return not any(self._lacks_marks(partition) for partition in self._candidates.values())

    def _lacks_marks(self, partition: SessionPartition) -> bool:
        """Whether an omitted partition is a follower's, and the broker has to be asked for its watermarks."""
        item = partition.item
        if item is None or self.replica_id < 0 or item.marks.high_watermark != UNKNOWN:
            return False
        return not partition.probed

    def incremental(self) -> bytes:
        """The topics and forgotten_topics_data of a request that gives the broker what the last plan left in.

        From now on the broker's session is taken to be so.
        """
        entries: dict[bytes, list[bytes]] = {}
        forgotten: dict[bytes, list[bytes]] = {}
        stay: list[PartitionKey] = []
        self.probes = 0
        for key, partition in self._candidates.items():
            item = partition.item
            if item is None or key in self._changed:
                continue
            if item.omitted and self._lacks_marks(partition):
                self.probes += 1
                entries.setdefault(key[0], []).append(partition.raw(self.version))
            elif item.omitted:
                stay.append(key)
            elif partition.most != item.bound:
                entries.setdefault(key[0], []).append(partition.raw(self.version))
        for key, partition in self._changed.items():
            if partition.omitted and self._lacks_marks(partition):
                self.probes += 1
                entries.setdefault(key[0], []).append(partition.raw(self.version))
            elif partition.omitted:
                stay.append(key)
            else:
                entries.setdefault(key[0], []).append(partition.raw(self.version))
        self._changed.clear()
        for key in stay:
            partition = self._partitions[key]
            self._changed[key] = partition
            if partition.at_broker:
                partition.at_broker = False
                forgotten.setdefault(key[0], []).append(i32(key[1]))
        for key in self._forgotten:
            forgotten.setdefault(key[0], []).append(i32(key[1]))
        self._forgotten.clear()
        return write_topics(self.version, entries, forgotten)

    def full(self, rewrite: FetchRewrite) -> bytes | None:
        """The topics of a request that names all that the last plan left in, and of a follower's rest what
        has to be asked for its watermarks; None where that is nothing, though the client wants something, or
        where the watermarks of a consumer's omitted partition are unknown.

        Omitted partitions are added to `rewrite`.
        """
        entries: dict[bytes, list[bytes]] = {}
        added: dict[bytes, list[bytes]] = {}
        self.probes = 0
        self.unknown = 0
        self._changed.clear()
        for key, partition in self._partitions.items():
            item = partition.item
            offsets: Offsets | None = None
            if item is not None and item.omitted:
                offsets = self._offsets(item, partition.entry)
            if offsets is not None:
                partition.at_broker = False
                self._changed[key] = partition
                added.setdefault(key[0], []).append(empty_partition(self.version, key[1], offsets))
            elif self.replica_id < 0 and partition.omitted:
                self._changed[key] = partition
                self.unknown += 1
            else:
                if self.replica_id >= 0 and partition.omitted:
                    self.probes += 1
                entries.setdefault(key[0], []).append(partition.raw(self.version))
        rewrite.added_topics = len(added)
        rewrite.added = write_partitions(self.version, added)
        if self.unknown > 0:
            return None
        return write_topics(self.version, entries, {}) if entries or not added else None

    def _offsets(self, item: FetchItem, entry: FetchEntry) -> Offsets | None:
        """The watermarks that an empty partition needs. A follower's must be of its leader epoch."""
        if self.replica_id >= 0 and item.marks.leader_epoch != entry.leader_epoch:
            return None
        return item.marks.offsets

    def next_broker_epoch(self) -> int:
        """The epoch of the request that goes to the broker now."""
        epoch = self.broker_epoch
        self.broker_epoch = _after(epoch)
        return epoch

    def advance_client(self) -> None:
        """The client has sent the request whose turn it was."""
        self.client_epoch = _after(self.client_epoch)


def _after(epoch: int) -> int:
    return 1 if epoch == MAX_EPOCH else epoch + 1


def _served(items: list[FetchItem]) -> int:
    """How many items it takes to get behind the last that was let in under a bound."""
    at = len(items)
    while at > 0:
        item = items[at - 1]
        if item.bound != NO_BOUND and not item.omitted:
            return at
        at -= 1
    return 0
