"""Batches: where record batches end, from their heads alone.

A batch (and a message of a message set, before magic 2) begins with base_offset (int64) and the length of
the rest (int32). A broker fills a fetch to the byte, so a partition may end with a partial batch, which
clients discard and fetch again.
"""

from typing import Final

from mypy_extensions import i64 as native

from proxy.wire.reader import Reader, i32_at

HEAD_BYTES: Final = 12
"""The bytes of base_offset and of the length."""
LENGTH_AT: Final[native] = 8
"""The offset of the length in a head."""


def ends_with_batch(data: bytes, start: native, end: native) -> bool:
    """Whether the records from `start` to `end` are whole batches."""
    at = start
    while end - at >= HEAD_BYTES:
        length = i32_at(data, at + LENGTH_AT)
        if length < 0:
            return False
        at += HEAD_BYTES + length
    return at == end


def read_whole_batches(reader: Reader, size: int) -> tuple[int, int]:
    """Skip `size` bytes of records, which must have arrived.

    Return how many of the bytes are whole batches, and the size of the partial batch at the end: 0 if there
    is none, or if its length is not among the bytes.
    """
    whole = 0
    while size - whole >= HEAD_BYTES:
        reader.take(8)
        length = reader.i32()
        if length < 0 or length > size - whole - HEAD_BYTES:
            reader.skip(size - whole - HEAD_BYTES)
            return whole, HEAD_BYTES + max(length, 0)
        reader.skip(length)
        whole += HEAD_BYTES + length
    reader.skip(size - whole)
    return whole, 0
