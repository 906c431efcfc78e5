"""ShareFetch: v1-2 (KIP-932; v0 was a preview, in Kafka 4.0 only). Read for its bounds, size and
NodeEndpoints.
"""

from typing import cast, final

from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import SHARE_FETCH
from proxy.wire.apis.api import Api
from proxy.wire.apis.share_response import ShareResponse
from proxy.wire.errors import Short
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView, View
from proxy.wire.walk import walk


class ShareFetchResponse(ShareResponse):
    lock_timeout_from = 1
    ends_with_records = False

    def read_head(self, reader: Reader, view: View) -> bool:
        has_more = super().read_head(reader, view)
        if view.partial:
            # A response that is so large has records, and the quotas charge it before they have been read.
            cast("ResponseView", view).lock_ms = self.lock_ms
        return has_more

    def read_partition(self, reader: Reader, view: View) -> int:
        self.read_partition_head(reader, view)
        return reader.bytes_length(True)

    def read_partition_head(self, reader: Reader, view: View) -> None:
        """Read a partition after its number, up to the length of its records."""
        view.cursor.error_code = reader.i16()
        reader.skip_string(True)  # error_message
        reader.take(2)  # acknowledge_error_code
        reader.skip_string(True)  # acknowledge_error_message
        reader.take(8)  # current_leader: leader_id, leader_epoch
        reader.skip_tags()

    def read_after_records(self, reader: Reader, view: View) -> None:
        if self.read_acquired(reader) > 0:
            cast("ResponseView", view).lock_ms = self.lock_ms
        reader.skip_tags()

    def read_acquired(self, reader: Reader) -> int:
        """Read the acquired_records, and return their number."""
        acquired = left = reader.count(True)
        while left > 0:
            reader.take(18)  # first_offset, last_offset, delivery_count
            reader.skip_tags()
            left -= 1
        return acquired


@final
class ShareFetch(Api):
    key = SHARE_FETCH
    oldest = 1
    newest = 2
    flexible_from = 0

    def read_request(self, reader: Reader, view: RequestView) -> None:
        view.cursor.done = True
        try:
            self._read_head(reader, view)
        except Short:
            # The request is too short to be valid. The broker rejects it, so no quota needs its bounds.
            return

    def _read_head(self, reader: Reader, view: RequestView) -> None:
        reader.skip_string(True)  # group_id
        reader.skip_string(True)  # member_id
        reader.take(4)  # share_session_epoch
        view.max_wait_ms = reader.i32()
        view.min_bytes_at = reader.offset
        view.min_bytes = reader.i32()
        view.max_bytes_at = reader.offset
        view.max_bytes = reader.i32()

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        walk(ShareFetchResponse(addresses), reader, view)
