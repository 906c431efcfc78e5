"""Remove the records from a ShareFetch response (KIP-932), as a broker does for a client over its quota.

The results of the acknowledgements stay. The records stay locked at the broker, which delivers them again
after group.share.record.lock.duration.ms.
"""

from typing import Final, final

from proxy.wire.addresses import Unchanged
from proxy.wire.apis.api_78_share_fetch import ShareFetchResponse
from proxy.wire.edit import LENGTH_SIZE, NO_TAGS, Edit, i32
from proxy.wire.reader import Reader
from proxy.wire.views import ResponseView, View
from proxy.wire.walk import walk

_NOTHING: Final = b"\1"
"""An array, or records, of length 0."""
_THROTTLE_TIME: Final = 4
"""The bytes of throttle_time_ms."""
_ADDRESSES: Final = Unchanged()


@final
class _Emptying(ShareFetchResponse):
    """Collects an edit for each partition with records or acquired records."""

    def __init__(self) -> None:
        super().__init__(_ADDRESSES)
        self.removals: Final[list[Edit]] = []
        self._records_at = 0
        self._has_records = False

    def read_partition(self, reader: Reader, view: View) -> int:
        self.read_partition_head(reader, view)
        self._records_at = reader.offset
        size = reader.bytes_length(True)
        self._has_records = size > 0
        return size

    def read_after_records(self, reader: Reader, view: View) -> None:
        acquired = self.read_acquired(reader)
        if acquired > 0 or self._has_records:
            self.removals.append(Edit(self._records_at, reader.offset, _NOTHING + _NOTHING))
        reader.skip_tags()


def removals(pieces: list[bytes], body_at: int, api_version: int) -> list[Edit]:
    """Return the edits that remove all records of a complete response; none if it has no records. `body_at`
    is the offset of throttle_time_ms.
    """
    emptying = _Emptying()
    walk(emptying, Reader(pieces, body_at), ResponseView(api_version, True, 0, False))
    return emptying.removals


def empty_response(pieces: list[bytes], body_at: int, api_version: int, throttle_time_ms: int) -> bytes:
    """Return a response without partitions, as a whole frame. Its error and acquisition_lock_timeout_ms are
    the broker's: `pieces` need only reach to the topics of the broker's response.
    """
    header = Reader(pieces, LENGTH_SIZE).peek(body_at - LENGTH_SIZE)
    error_at = body_at + _THROTTLE_TIME
    reader = Reader(pieces, error_at)
    ShareFetchResponse(_ADDRESSES).read_error(reader, api_version)
    kept = Reader(pieces, error_at).peek(reader.offset - error_at)
    body = header + i32(throttle_time_ms) + kept + _NOTHING + _NOTHING + NO_TAGS
    return i32(len(body)) + body
