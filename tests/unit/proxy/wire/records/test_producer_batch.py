"""The head of a record batch, as kafka-python writes it."""

import pytest

from proxy.wire.records.producer_batch import BATCH_HEAD_BYTES, NO_PRODUCER_ID, read_producer_batch
from tests.support.messages.requests import batch


def test_the_head_of_a_batch_says_whose_and_which_it_is() -> None:
    records = bytearray(batch([b"one", b"two", b"three"]))
    records[43:51] = (4000).to_bytes(8, "big")
    records[51:53] = (3).to_bytes(2, "big")
    records[53:57] = (2**31 - 2).to_bytes(4, "big")
    read = read_producer_batch(bytes(records[:BATCH_HEAD_BYTES]))
    assert read is not None
    assert (read.producer_id, read.epoch, read.base_sequence, read.records) == (4000, 3, 2**31 - 2, 3)
    assert read.next_sequence == 1, "after 2^31 - 1 comes 0"
    assert read.checksum == int.from_bytes(records[17:21], "big", signed=True)
    assert read.base_timestamp == int.from_bytes(records[27:35], "big") > 1_500_000_000_000


def test_a_producer_that_is_not_idempotent_has_no_id() -> None:
    read = read_producer_batch(batch([b"one"])[:BATCH_HEAD_BYTES])
    assert read is not None
    assert read.producer_id == NO_PRODUCER_ID


@pytest.mark.parametrize(
    "head",
    [b"", batch([b"x"])[:60], batch([b"x" * 80], magic=1)[:61]],
    ids=["empty", "a byte too short", "magic 1"],
)
def test_what_is_no_whole_head_of_magic_2_says_nothing(head: bytes) -> None:
    assert read_producer_batch(head) is None
