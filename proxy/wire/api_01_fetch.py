"""Fetch: v0-18.

v1 throttle_time_ms, first in the response; v3 max_bytes; v4 isolation_level, aborted transactions; v5
log_start_offset; v7 sessions (KIP-227); v11 preferred_read_replica; v12 flexible; v13 topic ids (KIP-516);
v15 replica_id moves into a tag (KIP-903); v16 NodeEndpoints (KIP-951).
"""

from typing import Final, cast, final

from proxy.wire.addresses import Addresses, rewrite_endpoints_tag
from proxy.wire.apis import Api
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
        return view.want_items or version >= ENDPOINTS_FROM

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
        return reader.bytes_length(view.flexible)

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
        elif not view.partial:
            self._read_partition_limits(reader, view)
        view.done = True

    def _read_partition_limits(self, reader: Reader, view: RequestView) -> None:
        """v0-2: topics, each with partitions: partition, fetch_offset, partition_max_bytes.

        A request that is cut through names tens of thousands of partitions: it is left as it is.
        """
        topics = reader.count(False)
        while topics > 0:
            reader.skip_string(False)
            partitions = reader.count(False)
            while partitions > 0:
                reader.take(12)
                at = reader.offset
                most = reader.i32()
                view.partition_max_bytes.append((at, most))
                view.max_bytes = max(view.max_bytes, most)
                partitions -= 1
            topics -= 1

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        walk(FetchResponse(addresses), reader, view)
