"""The heads of a request's batches are those that a reading with heads finds."""

import pytest

from proxy.wire.apis.api_00_produce import Produce
from proxy.wire.apis.batch_heads import BatchHeads
from proxy.wire.edit import string
from proxy.wire.reader import Reader
from proxy.wire.records.producer_batch import BATCH_HEAD_BYTES
from proxy.wire.views import RequestView

BATCHES = [bytes([place]) * (50 + 10 * place) for place in range(5)]


def body(topics: dict[str, list[bytes]]) -> bytes:
    """A Produce v9 body: batches by topic."""
    out = b"\0" + b"\0\1" + bytes(4) + bytes([len(topics) + 1])
    for topic, batches in topics.items():
        out += string(topic, True) + bytes([len(batches) + 1])
        for number, batch in enumerate(batches):
            out += number.to_bytes(4, "big") + bytes([(len(batch) + 1) | 0x80, (len(batch) + 1) >> 7]) + batch
            out += b"\0"
        out += b"\0"
    return out + b"\0"


@pytest.mark.parametrize("pieces", [1, 3, 50])
def test_each_item_gets_its_head(pieces: int) -> None:
    frame = b"frame's head" + body({"a": BATCHES[:2], "b": BATCHES[2:]})
    size = -(-len(frame) // pieces)
    parts = [frame[at : at + size] for at in range(0, len(frame), size)]
    view = RequestView(0, 9, 1, "c", len(frame), flexible=True, want_items=True)
    Produce().read_request(Reader(parts, 12), view)
    assert [item.head for item in view.items] == [b""] * 5
    heads = BatchHeads(parts, 12)
    heads.read(view)
    assert [item.head for item in view.items] == [batch[:BATCH_HEAD_BYTES] for batch in BATCHES]
    assert [(item.topic, item.partition) for item in view.items] == [
        ("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2),
    ]  # fmt: skip
