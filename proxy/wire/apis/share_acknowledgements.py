"""Whether a ShareFetch request acknowledges records (KIP-932), which it does besides fetching others."""

from typing import Final

from mypy_extensions import i64 as native

from proxy.wire.errors import ProtocolError
from proxy.wire.reader import Reader

PARTITIONS_AT_MOST: Final[native] = 1000
"""The most topics and partitions that are read; a request with more counts as one with acknowledgements.
While a client is over its quota, such a request gets no records, so a client gains nothing by a long list.
"""


def acknowledges(pieces: list[bytes], max_bytes_at: int, api_version: int) -> bool:
    """Whether a ShareFetch request acknowledges records; False if it does not parse. `pieces` are the whole
    frame, and `max_bytes_at` is the offset of its max_bytes.
    """
    try:
        return _read(Reader(pieces, max_bytes_at), api_version)
    except ProtocolError:
        return False


def _read(reader: Reader, api_version: int) -> bool:
    reader.take(12)  # max_bytes, max_records, batch_size
    if api_version >= 2:
        reader.take(2)  # share_acquire_mode, is_renew_ack
    left = PARTITIONS_AT_MOST
    topics = reader.count(True)
    while topics > 0:
        reader.uuid()
        partitions = reader.count(True)
        left -= partitions + 1
        if left < 0:
            return True
        while partitions > 0:
            reader.take(4)  # partition_index
            if reader.count(True) > 0:
                return True
            reader.skip_tags()
            partitions -= 1
        reader.skip_tags()
        topics -= 1
    return False
