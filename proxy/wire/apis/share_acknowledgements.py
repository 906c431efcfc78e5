"""Whether a ShareFetch request acknowledges records (KIP-932), which it does besides fetching others."""

from typing import Final

from mypy_extensions import i64 as native

from proxy.wire.errors import ProtocolError
from proxy.wire.reader import Reader

PARTITIONS_AT_MOST: Final[native] = 1000
"""Read before the request counts as one with acknowledgements. While the client is over its quota, such a
request gets no records, so a client that lies gains nothing.
"""


def acknowledges(pieces: list[bytes], max_bytes_at: int, api_version: int) -> bool:
    """Read a whole frame from its max_bytes on. A request that does not parse acknowledges nothing."""
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
