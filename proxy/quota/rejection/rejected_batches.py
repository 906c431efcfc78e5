"""RejectedBatches: no batch overtakes one that was rejected before it.

A producer sends requests ahead of their answers. When a batch of a partition has been rejected, those behind
it must not go on before it comes again: the broker would find a gap in an idempotent producer's sequence
numbers (OUT_OF_ORDER_SEQUENCE_NUMBER, after which such a producer takes long to recover), and the records of
any other would change places.

    idempotent    the rejected batch is known by its base_sequence, under producer id and epoch. Once it has
                  gone on, the next one has to be the one that follows, up to the last that was rejected. A
                  batch from before it passes: the broker has it already. A new epoch begins anew
    others        the rejected batch is known by its checksum; one that is as old, by its first timestamp,
                  passes too, because some clients put a batch together anew. Clients do not send past a batch
                  that waits for its retry, so the gate is only for what was on its way, and shuts soon

A producer may give up on a batch. So a gate that nobody has come to again opens after a while.
"""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.wire.producer_batch import NO_PRODUCER_ID, ProducerBatch
from proxy.wire.views import Item

IDEMPOTENT_SECONDS: Final = 30.0
"""How long after the end of its wait a rejected batch may be gone; clients retry within seconds."""
OTHERS_SECONDS: Final = 1.0
GATES_AT_MOST: Final = 100_000
_SEQUENCES: Final = 1 << 31

Producer = tuple[Identity | None, int, str, bytes, int]
"""The connection or the producer id, and the partition."""


@final
class _Gate:
    """A batch that was rejected, and how far the rejected ones behind it go."""

    __slots__ = ("bucket", "checksum", "deadline", "end", "epoch", "expected", "timestamp")

    def __init__(self, batch: ProducerBatch, bucket: Bucket) -> None:
        self.epoch: Final = batch.epoch
        self.expected = batch.base_sequence
        self.end = batch.next_sequence
        self.checksum = batch.checksum
        self.timestamp = batch.base_timestamp
        self.bucket = bucket
        self.deadline = 0.0


@final
class RejectedBatches:
    """Of one broker."""

    def __init__(self) -> None:
        self._gates: Final[dict[Producer, _Gate]] = {}

    @property
    def any(self) -> bool:
        """Whether any batch is to come again."""
        return len(self._gates) > 0

    def behind(self, item: Item, batch: ProducerBatch, who: Identity, now: float) -> Bucket | None:
        """The bucket for whose sake an earlier batch is to come first; None where this one may be judged."""
        names = _producer(item, batch, who)
        gate = self._gates.get(names)
        if gate is None:
            return None
        if now >= gate.deadline or batch.epoch != gate.epoch:
            del self._gates[names]
            return None
        if batch.producer_id == NO_PRODUCER_ID:
            again = batch.checksum == gate.checksum or batch.base_timestamp <= gate.timestamp
            return None if again else gate.bucket
        if not _before(gate.expected, batch.base_sequence):
            return None
        if _before(gate.end, batch.next_sequence):
            gate.end = batch.next_sequence
        return gate.bucket

    def reject(self, item: Item, batch: ProducerBatch, who: Identity, bucket: Bucket, until: float) -> None:
        """A batch that is behind no other is rejected; its producer waits until then at most."""
        names = _producer(item, batch, who)
        gate = self._gates.get(names)
        if batch.producer_id == NO_PRODUCER_ID:
            gate = _Gate(batch, bucket)
            gate.deadline = until + OTHERS_SECONDS
        else:
            before = gate
            if gate is None or batch.base_sequence != gate.expected:
                gate = _Gate(batch, bucket)
                if before is not None and _before(gate.end, before.end):
                    gate.end = before.end
            gate.bucket = bucket
            gate.deadline = until + IDEMPOTENT_SECONDS
        if len(self._gates) >= GATES_AT_MOST:
            self._gates.clear()
        self._gates[names] = gate

    def admit(self, item: Item, batch: ProducerBatch, who: Identity) -> None:
        """A batch that is behind no other goes on."""
        names = _producer(item, batch, who)
        gate = self._gates.get(names)
        if gate is None:
            return
        if batch.producer_id == NO_PRODUCER_ID:
            del self._gates[names]
        elif batch.base_sequence == gate.expected:
            gate.expected = batch.next_sequence
            if not _before(gate.expected, gate.end):
                del self._gates[names]

    def forget(self, now: float) -> None:
        """Drop the gates that are open by now."""
        gone = [names for names, gate in self._gates.items() if now >= gate.deadline]
        for names in gone:
            del self._gates[names]

    def clear(self) -> None:
        self._gates.clear()


def _producer(item: Item, batch: ProducerBatch, who: Identity) -> Producer:
    idempotent = batch.producer_id != NO_PRODUCER_ID
    return (None if idempotent else who, batch.producer_id, item.topic, item.topic_id, item.partition)


def _before(one: int, other: int) -> bool:
    """Whether one sequence number comes before another, 0 after 2^31 - 1 included."""
    return 0 < (other - one) % _SEQUENCES < _SEQUENCES // 2
