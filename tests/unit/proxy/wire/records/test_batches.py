import pytest

from proxy.wire.errors import Short
from proxy.wire.reader import Reader
from proxy.wire.records.batches import ends_with_batch, read_whole_batches
from tests.support.messages.exchanges import record_batch

TWO = record_batch(61) + record_batch(100)


@pytest.mark.parametrize(
    ("records", "whole", "cut_batch"),
    [
        (b"", 0, 0),
        (TWO, 161, 0),
        (record_batch(12), 12, 0),
        (TWO + b"\0" * 11, 161, 0),
        (TWO + record_batch(50)[:49], 161, 50),
        (TWO + record_batch(50)[:12], 161, 50),
        (record_batch(50)[:49], 0, 50),
        (b"\xff" * 40, 0, 12),
        (TWO + b"\xff" * 40, 161, 12),
    ],
)
@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_whole_batches_are_found_and_everything_is_read(
    records: bytes, whole: int, cut_batch: int, cut: int
) -> None:
    data = records + b"behind"
    reader = Reader([data[at : at + cut] for at in range(0, len(data), cut)])
    assert read_whole_batches(reader, len(records)) == (whole, cut_batch)
    assert reader.offset == len(records)


def test_records_that_are_not_there_are_short() -> None:
    with pytest.raises(Short):
        read_whole_batches(Reader([TWO[:-1]]), len(TWO))


@pytest.mark.parametrize(
    ("records", "whole"),
    [
        (b"", True),
        (TWO, True),
        (TWO[:-1], False),
        (TWO + bytes(11), False),
        # A batch of length -1 begins the next one a byte early, and the last one ends at the end.
        (bytes(8) + b"\xff" * 4 + bytes(11), False),
        # A batch of length -12 would be read for ever.
        (bytes(8) + (-12).to_bytes(4, "big", signed=True), False),
    ],
)
def test_records_end_with_a_batch_if_all_of_them_are_whole(records: bytes, whole: bool) -> None:
    data = b"before" + records + b"behind"
    assert ends_with_batch(data, len(b"before"), len(b"before") + len(records)) is whole
