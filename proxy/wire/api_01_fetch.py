"""Fetch: v0-18.

v1 throttle_time_ms, first in the response; v3 max_bytes; v4 isolation_level, aborted transactions; v5
log_start_offset; v7 sessions (KIP-227); v11 preferred_read_replica; v12 flexible; v13 topic ids (KIP-516);
v15 replica_id moves into a tag (KIP-903); v16 NodeEndpoints (KIP-951).
"""

from typing import Final, cast, final

from proxy.wire.addresses import Addresses, rewrite_endpoints_tag
from proxy.wire.apis import Api
from proxy.wire.batches import read_whole_batches
from proxy.wire.edit import Edit, i32, uvarint
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView, View
from proxy.wire.walk import Partitioned, walk

ENDPOINTS_FROM: Final = 16


@final
class FetchResponse(Partitioned):
    topic_id_from = 13

    def __init__(self, addresses: Addresses) -> None:
        self.addresses: Final = addresses

    def read_head(self, reader: Reader, view: View) -> bool:
        response = cast("ResponseView", view)
        version = view.api_version
        if version >= 1:
            response.throttle_at = reader.offset
            response.throttle_time_ms = reader.i32()
        if version >= 7:
            reader.take(6)  # error_code, session_id
        view.topics_left = reader.count(view.flexible)
        return view.want_items or view.whole_batches or version >= ENDPOINTS_FROM

    def read_partition(self, reader: Reader, view: View) -> int:
        version = view.api_version
        reader.take(10)  # error_code, high_watermark
        if version >= 4:
            # last_stable_offset, and from v5 log_start_offset
            reader.take(16 if version >= 5 else 8)
            left = reader.count(view.flexible)
            while left > 0:  # aborted_transactions: producer_id, first_offset
                reader.take(16)
                if view.flexible:
                    reader.skip_tags()
                left -= 1
        if version >= 11:
            reader.take(4)  # preferred_read_replica
        view.records_length_at = reader.offset
        return reader.bytes_length(view.flexible)

    def read_whole_batches(self, reader: Reader, view: View) -> None:
        start = reader.offset
        size = view.records_left
        whole = read_whole_batches(reader, size)
        view.any_batch = view.any_batch or whole > 0
        # Without a whole batch before it, the part is all that this client gets to see of a large one.
        if whole < size and view.any_batch:
            length = uvarint(whole + 1) if view.flexible else i32(whole)
            cut = [Edit(view.records_length_at, start, length), Edit(start + whole, start + size, b"")]
            for edit in cut:
                cast("ResponseView", view).body_size += edit.growth
            view.edits.extend(cut)
            view.records_size = whole

    def read_tail(self, reader: Reader, view: View) -> None:
        if view.api_version >= ENDPOINTS_FROM:
            rewrite_endpoints_tag(reader, cast("ResponseView", view), self.addresses)


@final
class Fetch(Api):
    key = 1
    name = "Fetch"
    oldest = 0
    newest = 18
    flexible_from = 12

    def read_request(self, reader: Reader, view: RequestView) -> None:
        version = view.api_version
        if version < 15:
            reader.take(4)  # replica_id
        view.max_wait_ms = reader.i32()
        view.min_bytes_at = reader.offset
        view.min_bytes = reader.i32()
        if version >= 3:
            view.max_bytes_at = reader.offset
            view.max_bytes = reader.i32()
        view.done = True

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        # A part of a batch is of no use to a client whose quota it would spend.
        view.whole_batches = request.bounded
        walk(FetchResponse(addresses), reader, view)
