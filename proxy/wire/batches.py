"""Batches: where record batches end, from their heads alone.

A batch (and a message of a message set, before magic 2) begins with base_offset (int64) and the length of
what follows (int32). A broker fills a fetch to the byte, so the last batch of a partition may be a part of
one, which clients throw away and fetch again.
"""

from typing import Final

from proxy.wire.reader import Reader

HEAD_BYTES: Final = 12


def read_whole_batches(reader: Reader, size: int) -> tuple[int, int]:
    """Read over `size` bytes of records, which have to be there; returns how many of them make up whole
    batches, and the size of the batch of which the rest is a part: 0 where there is no rest, or too little of
    it to tell.
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
