"""RejectedBatches: keeps the order of a partition's batches after one of them has been rejected.

Producers send requests without waiting for responses. When a batch is rejected, later batches of the
partition that are already on their way must not be forwarded before it is retried. Otherwise the broker would
find a gap in the sequence numbers of an idempotent producer (OUT_OF_ORDER_SEQUENCE_NUMBER, from which
producers take about 20 s to recover), and the records of other producers would be reordered.

After a rejection the partition has a gate, which rejects later batches of the producer:

    idempotent    The gate expects the base_sequence of the rejected batch, under the same producer id and
                  epoch. After that batch it expects the next one, up to the last that was rejected. Earlier
                  batches are forwarded: the broker has them already. A new epoch removes the gate.
    others        The gate expects the checksum of the rejected batch. Batches with an equal or earlier first
                  timestamp are forwarded, because some clients rebuild a batch for its retry. Clients send
                  nothing while a batch waits for its retry, so the gate is needed for a short time only.

A producer may give up a batch, so a gate has a deadline.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.wire.records.producer_batch import NO_PRODUCER_ID, SEQUENCES, ProducerBatch
from proxy.wire.views import Item

IDEMPOTENT_SECONDS: Final = 30.0
"""How long a gate stays after the producer's wait. Clients retry within seconds, so this is only reached if
the producer gave the batch up."""
OTHERS_SECONDS: Final = 1.0
"""Without sequence numbers, how long a gate stays after a mute that may begin as late as it is long. A batch
that is not recognized is rejected for this long."""
GATES_AT_MOST: Final = 100_000
"""Past this many, the gates of the principal with the most are removed: its batches may then be reordered,
but memory is bounded.
"""

Producer = tuple[Identity | None, int, str, bytes, int]
"""The client, the producer id, and the partition. An idempotent producer may retry on another connection, so
its client is None: any with its principal.
"""


@final
class _Gate:
    """The batch that has to come next, and the end of the batches rejected so far."""

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
    """The gates of one broker."""

    def __init__(self) -> None:
        self._gates: Final[dict[str, dict[Producer, _Gate]]] = {}
        """By principal, because the proxy cannot verify a producer id: otherwise any user could set up and
        remove the gates of others. No principal is without gates.
        """
        self._count: native = 0

    @property
    def any(self) -> bool:
        """Whether there is any gate."""
        return self._count > 0

    def gate_bucket(self, item: Item, batch: ProducerBatch, who: Identity, now: float) -> Bucket | None:
        """The bucket of the gate that rejects this batch; None if no gate does."""
        names = _producer(item, batch, who)
        gate = self._gate(names, who)
        if gate is None:
            return None
        if now >= gate.deadline or batch.epoch != gate.epoch:
            self._remove(names, who.principal)
            return None
        if batch.producer_id == NO_PRODUCER_ID:
            again = batch.checksum == gate.checksum or batch.base_timestamp <= gate.timestamp
            return None if again else gate.bucket
        if not _before(gate.expected, batch.base_sequence):
            return None
        if _before(gate.end, batch.next_sequence):
            gate.end = batch.next_sequence
        return gate.bucket

    def reject(
        self,
        item: Item,
        batch: ProducerBatch,
        who: Identity,
        bucket: Bucket,
        *,
        throttle_seconds: float,
        mute_seconds: float,
        now: float,
    ) -> None:
        """Set up a gate for a rejected batch. Its producer is told to wait, and is muted for a part of it."""
        names = _producer(item, batch, who)
        gate = self._gate(names, who)
        if batch.producer_id == NO_PRODUCER_ID:
            gate = _Gate(batch, bucket)
            gate.deadline = now + 2.0 * mute_seconds + OTHERS_SECONDS
        else:
            before = gate
            if gate is None or batch.base_sequence != gate.expected:
                gate = _Gate(batch, bucket)
                if before is not None and _before(gate.end, before.end):
                    gate.end = before.end
            gate.bucket = bucket
            gate.deadline = now + throttle_seconds + IDEMPOTENT_SECONDS
        if self._count >= GATES_AT_MOST:
            self._remove_most()
        of_principal = self._gates.setdefault(who.principal, {})
        self._count -= len(of_principal)
        of_principal[names] = gate
        self._count += len(of_principal)

    def _gate(self, names: Producer, who: Identity) -> _Gate | None:
        of_principal = self._gates.get(who.principal)
        return None if of_principal is None else of_principal.get(names)

    def _remove(self, names: Producer, principal: str) -> None:
        of_principal = self._gates[principal]
        del of_principal[names]
        self._count -= 1
        if not of_principal:
            del self._gates[principal]

    def _remove_most(self) -> None:
        most: native = 0
        largest = ""
        for principal, of_principal in self._gates.items():
            if len(of_principal) > most:
                most = len(of_principal)
                largest = principal
        del self._gates[largest]
        self._count -= most

    def admit(self, item: Item, batch: ProducerBatch, who: Identity) -> None:
        """Note that a batch is forwarded: its gate expects the next one, or is removed."""
        names = _producer(item, batch, who)
        gate = self._gate(names, who)
        if gate is None:
            return
        if batch.producer_id == NO_PRODUCER_ID:
            self._remove(names, who.principal)
        elif batch.base_sequence == gate.expected:
            gate.expected = batch.next_sequence
            if not _before(gate.expected, gate.end):
                self._remove(names, who.principal)

    def forget(self, now: float) -> None:
        """Drop the gates whose deadline is over."""
        for principal, of_principal in list(self._gates.items()):
            gone = [names for names, gate in of_principal.items() if now >= gate.deadline]
            for names in gone:
                self._remove(names, principal)

    def clear(self) -> None:
        self._gates.clear()
        self._count = 0


def _producer(item: Item, batch: ProducerBatch, who: Identity) -> Producer:
    client = who if batch.producer_id == NO_PRODUCER_ID else None
    return (client, batch.producer_id, item.topic, item.topic_id, item.partition)


def _before(one: int, other: int) -> bool:
    """Whether one sequence number precedes another. 2^31 - 1 is followed by 0."""
    return 0 < (other - one) % SEQUENCES < SEQUENCES // 2
