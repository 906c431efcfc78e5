"""Produce: v0-13.

v1 throttle_time_ms, last in the response; v3 transactional_id; v9 flexible; v10 NodeEndpoints and current
leader in tags (KIP-951); v13 topic ids (KIP-516). With acks=0 no response comes. Up to v2 the records are
message sets.
"""

from typing import Final, cast, final

from mypy_extensions import i64 as native
from mypy_extensions import mypyc_attr

from proxy.wire.addresses import Addresses, rewrite_endpoints_tag
from proxy.wire.api_keys import PRODUCE
from proxy.wire.apis.api import Api
from proxy.wire.errors import Malformed
from proxy.wire.keyed.keyed_arrays import UNCHECKED
from proxy.wire.reader import Reader
from proxy.wire.records.producer_batch import BATCH_HEAD_BYTES
from proxy.wire.views import RequestView, ResponseView, View
from proxy.wire.walk import Partitioned, read_usual_records, walk

NEWEST: Final = 13
FLEXIBLE_FROM: Final = 9
TOPIC_ID_FROM: Final = 13
"""The first version that names topics by id (KIP-516)."""
MAX_READ: Final = 10_000
"""The most topics, and the most partitions, of a request whose topics are read: all are read in one turn of
the event loop.
"""
USUAL_BYTES: Final = 33
"""A partition of a flexible response without an error: index, error_code, base_offset, log_append_time_ms,
log_start_offset (30 bytes), and a byte for each of record_errors, error_message and tags.
"""


@final
class ProduceRequest(Partitioned):
    """The request. Its items are all of its partitions."""

    topic_id_from = TOPIC_ID_FROM
    keeps_last_early = True

    def read_head(self, reader: Reader, view: View) -> bool:
        if view.api_version >= 3:
            reader.skip_string(view.flexible)  # transactional_id
        request = cast("RequestView", view)
        request.acks = reader.i16()
        request.timeout_ms = reader.i32()
        topics = request.topics = view.cursor.topics_left = reader.count(view.flexible)
        reads_on = view.want_items or view.protected_topics is not None
        if reads_on:
            if topics > MAX_READ:
                raise Malformed(f"a Produce request of {topics} topics; the proxy takes {MAX_READ} at most")
            view.cursor.room = MAX_READ
            if view.partial and topics > UNCHECKED:
                view.cursor.key_hashes = []
        return reads_on

    def read_usual(self, reader: Reader, view: View) -> None:
        if view.flexible and not view.want_heads:
            read_usual_records(self, reader, view, 0)

    def read_partition(self, reader: Reader, view: View) -> int:
        size = reader.bytes_length(view.flexible)
        if view.want_heads:
            view.cursor.head = reader.peek(min(size, BATCH_HEAD_BYTES))
        return size

    def read_tail(self, reader: Reader, view: View) -> None:
        if view.flexible and not reader.skip_no_tags():
            reader.skip_tags()


@final
@mypyc_attr(free_list_len=1)
class ProduceResponse(Partitioned):
    """The response. Its items are the partitions with an error: the others are known from the request."""

    topic_id_from = TOPIC_ID_FROM
    only_errors = True

    def __init__(self, addresses: Addresses) -> None:
        self.addresses: Final = addresses

    def read_head(self, reader: Reader, view: View) -> bool:
        view.cursor.topics_left = reader.count(view.flexible)
        return True

    def read_usual(self, reader: Reader, view: View) -> None:
        """Skip partitions without an error, as nearly all are: all their fields have fixed sizes."""
        if not view.flexible:
            return
        data = reader.data
        at = reader.pos
        left = view.cursor.partitions_left
        end = reader.end - USUAL_BYTES
        while left > 0 and at <= end:
            error_code: native = data[at + 4]
            low: native = data[at + 5]
            record_errors: native = data[at + 30]
            error_message: native = data[at + 31]
            tags: native = data[at + 32]
            # A length of null or 0 is encoded as 0 or 1.
            if (error_code | low | tags) != 0 or (record_errors | error_message) > 1:
                break
            at += USUAL_BYTES
            left -= 1
        reader.pos = at
        view.cursor.partitions_left = left

    def read_partition(self, reader: Reader, view: View) -> int:
        version = view.api_version
        view.cursor.error_code = reader.i16()
        if version >= 5:
            reader.skip(24)  # base_offset, log_append_time_ms, log_start_offset
        else:
            reader.skip(16 if version >= 2 else 8)
        if version >= 8:
            left = reader.count(view.flexible)
            while left > 0:  # record_errors: batch_index, batch_index_error_message
                reader.take(4)
                reader.skip_string(view.flexible)
                if view.flexible:
                    reader.skip_tags()
                left -= 1
            reader.skip_string(view.flexible)  # error_message
        return 0

    def read_tail(self, reader: Reader, view: View) -> None:
        response = cast("ResponseView", view)
        if view.api_version >= 1:
            response.throttle_at = reader.offset
            response.throttle_time_ms = reader.i32()
        if view.api_version >= 10:
            rewrite_endpoints_tag(reader, response, self.addresses)


def acks_at(pieces: list[bytes], body_at: int, api_version: int, flexible: bool) -> int:
    """Return the offset of acks in the frame of a request whose body begins at `body_at`."""
    reader = Reader(pieces, body_at)
    if api_version >= 3:
        reader.skip_string(flexible)  # transactional_id
    return reader.offset


@final
class Produce(Api):
    key = PRODUCE
    oldest = 0
    newest = NEWEST
    flexible_from = FLEXIBLE_FROM

    def __init__(self) -> None:
        self._request: Final = ProduceRequest()

    def read_request(self, reader: Reader, view: RequestView) -> None:
        walk(self._request, reader, view)

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        walk(ProduceResponse(addresses), reader, view)
