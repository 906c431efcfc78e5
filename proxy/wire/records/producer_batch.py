"""ProducerBatch: who wrote a record batch, and which of that producer's batches it is (KIP-98).

A batch's head (magic 2), 61 bytes: base_offset int64, length int32, partition_leader_epoch int32, magic int8,
crc uint32, attributes int16, last_offset_delta int32, base_timestamp int64, max_timestamp int64, producer_id
int64, producer_epoch int16, base_sequence int32, number of records int32.
"""

from typing import Final, final

BATCH_HEAD_BYTES: Final = 61
NO_PRODUCER_ID: Final = -1
_MAGIC_AT: Final = 16
SEQUENCES: Final = 1 << 31
"""The number of sequence numbers: they are int32 from 0 on."""


@final
class ProducerBatch:
    """What the head of a batch says of its producer."""

    __slots__ = ("base_sequence", "base_timestamp", "checksum", "epoch", "producer_id", "records")

    def __init__(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        records: int,
        checksum: int,
        base_timestamp: int,
    ) -> None:
        self.producer_id: Final = producer_id
        """NO_PRODUCER_ID if the producer is not idempotent."""
        self.epoch: Final = epoch
        self.base_sequence: Final = base_sequence
        self.records: Final = records
        """How many sequence numbers the batch takes."""
        self.checksum: Final = checksum
        self.base_timestamp: Final = base_timestamp

    @property
    def next_sequence(self) -> int:
        """The base_sequence of the batch that follows; after 2^31 - 1 comes 0."""
        return (self.base_sequence + self.records) % SEQUENCES


def read_producer_batch(head: bytes) -> ProducerBatch | None:
    """Return the batch with this head; None if it is not a whole head of magic 2, as in a message set."""
    if len(head) < BATCH_HEAD_BYTES or head[_MAGIC_AT] != 2:
        return None
    return ProducerBatch(
        _signed(head, 43, 8),
        _signed(head, 51, 2),
        _signed(head, 53, 4),
        _signed(head, 23, 4) + 1,
        _signed(head, 17, 4),
        _signed(head, 27, 8),
    )


def _signed(head: bytes, at: int, size: int) -> int:
    return int.from_bytes(head[at : at + size], "big", signed=True)
