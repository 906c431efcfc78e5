"""Fetch: v0-18.

v1 throttle_time_ms, first in the response; v3 max_bytes; v4 isolation_level, aborted transactions; v5
log_start_offset; v7 sessions (KIP-227); v11 preferred_read_replica; v12 flexible; v13 topic ids (KIP-516);
v15 replica_id moves into a tag (KIP-903); v16 NodeEndpoints (KIP-951).
"""

from contextlib import suppress
from typing import Final, cast, final

from mypy_extensions import i64 as native
from mypy_extensions import mypyc_attr

from proxy.wire.addresses import Addresses, Unchanged, rewrite_endpoints_tag
from proxy.wire.api_keys import FETCH
from proxy.wire.apis.api import Api
from proxy.wire.edit import Edit, i32, uvarint
from proxy.wire.errors import Short
from proxy.wire.fetch.request import TOPIC_IDS_FROM
from proxy.wire.fetch.rewrite import FetchRewrite, Watermarks
from proxy.wire.reader import Reader
from proxy.wire.records.batches import read_whole_batches
from proxy.wire.views import RequestView, ResponseView, View
from proxy.wire.walk import Partitioned, has_all_sizes, read_usual_records, topic_name, walk

ENDPOINTS_FROM: Final = 16
"""The first version with NodeEndpoints (KIP-951)."""
USUAL_BYTES: Final[native] = 31
"""A partition of a flexible response without aborted transactions, from its error_code to its records:
error_code, high_watermark, last_stable_offset, log_start_offset (26 bytes), a byte for the transactions, and
preferred_read_replica.
"""
_UNCHANGED: Final = Unchanged()


@final
@mypyc_attr(free_list_len=1)
class FetchResponse(Partitioned):
    """The response. Its items are the partitions with records."""

    topic_id_from = 13
    only_records = True
    """Other partitions are not needed, and may be thousands: a client may name some that do not exist."""
    keeps_last_early = True

    def __init__(self, addresses: Addresses, rewrite: FetchRewrite | None) -> None:
        self.addresses: Final = addresses
        self._rewrites: Final = addresses.rewrites
        self._rewrite: Final = rewrite
        """What to read from the response and to insert into it; None if it is forwarded as it is."""
        self._marks: Watermarks | None = None

    def read_head(self, reader: Reader, view: View) -> bool:
        response = cast("ResponseView", view)
        version = view.api_version
        if version >= 1:
            response.throttle_at = reader.offset
            response.throttle_time_ms = reader.i32()
        rewrite = self._rewrite
        error_code: native = 0
        if rewrite is not None:
            view.cursor.topics_left = rewrite.read_head(reader, view.edits)
            for edit in view.edits:
                response.body_size += edit.growth
            response.note_error(rewrite.error_code)
            if rewrite.reads_partitions:
                return True
        elif version >= 7:
            error_code = reader.take_error(6)  # error_code, session_id
        if rewrite is None:
            view.cursor.topics_left = reader.count(view.flexible)
            if error_code != 0:
                response.note_error(error_code)
        return view.want_items or view.whole_batches or (self._rewrites and version >= ENDPOINTS_FROM)

    def read_usual(self, reader: Reader, view: View) -> None:
        """Read partitions without an error and without aborted transactions, as nearly all are."""
        rewrite = self._rewrite
        if view.flexible and (rewrite is None or not rewrite.reads_partitions):
            read_usual_records(self, reader, view, USUAL_BYTES)

    def read_partition(self, reader: Reader, view: View) -> int:
        version = view.api_version
        rewrite = self._rewrite
        if rewrite is None or not rewrite.reads_partitions:
            # error_code, high_watermark; from v4 last_stable_offset, and from v5 log_start_offset
            fields: native = 26 if version >= 5 else 18 if version >= 4 else 10
            view.cursor.error_code = reader.take_error(fields)
        else:
            self._learn(reader, view, rewrite)
        if version >= 4:
            left = reader.count(view.flexible)
            while left > 0:  # aborted_transactions: producer_id, first_offset
                reader.take(16)
                if view.flexible:
                    reader.skip_tags()
                left -= 1
        if version >= 11:
            reader.take(4)  # preferred_read_replica
        view.cursor.records_length_at = reader.offset
        size = reader.bytes_length(view.flexible)
        if self._marks is not None:
            self._marks.last_bytes = size
        return size

    def _learn(self, reader: Reader, view: View, rewrite: FetchRewrite) -> None:
        """Read a partition's fields up to its log_start_offset, and store its offsets as watermarks."""
        version = view.api_version
        topic = view.cursor.topic_id if version >= TOPIC_IDS_FROM else topic_name(view.cursor).encode()
        error_code = view.cursor.error_code = reader.i16()
        high_watermark = reader.i64()
        last_stable_offset = reader.i64() if version >= 4 else -1
        log_start_offset = reader.i64() if version >= 5 else -1
        marks = rewrite.marks(topic, view.cursor.partition)
        self._marks = marks
        if marks is not None and error_code == 0:
            marks.tell(high_watermark, last_stable_offset, log_start_offset)

    def read_whole_batches(self, reader: Reader, view: View) -> None:
        start = reader.offset
        size = view.cursor.records_left
        whole, cut_batch = read_whole_batches(reader, size)
        if self._marks is not None and size > 0:
            self._marks.batch_bytes = cut_batch
        view.cursor.any_batch = view.cursor.any_batch or whole > 0
        # If the response has no whole batch before it, the partial one stays: a client needs it to see that a
        # batch is larger than the bounds of its fetch.
        if whole < size and view.cursor.any_batch:
            length = uvarint(whole + 1) if view.flexible else i32(whole)
            cut = [Edit(view.cursor.records_length_at, start, length), Edit(start + whole, start + size, b"")]
            for edit in cut:
                cast("ResponseView", view).body_size += edit.growth
            view.edits.extend(cut)
            view.cursor.records_size = whole

    def read_tail(self, reader: Reader, view: View) -> None:
        if self._rewrites and view.api_version >= ENDPOINTS_FROM:
            rewrite_endpoints_tag(reader, cast("ResponseView", view), self.addresses)


def has_every_item(reader: Reader, request: RequestView) -> bool:
    """Whether the part of a response that has arrived has the sizes of all partitions. The reader is behind
    the correlation_id, and stays there.
    """
    view = ResponseView(request.api_version, request.flexible, 0, want_items=True)
    view.partial = True
    start = reader.mark()
    with suppress(Short):
        if request.flexible:
            reader.skip_tags()
        walk(FetchResponse(_UNCHANGED, None), reader, view)
    reader.back_to(start)
    return has_all_sizes(view.cursor)


def after_bounds(view: RequestView) -> native:
    """Return the offset in the frame after max_bytes, or after min_bytes in versions without max_bytes."""
    return (view.max_bytes_at if view.max_bytes_at >= 0 else view.min_bytes_at) + 4


@final
class Fetch(Api):
    key = FETCH
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
        view.cursor.done = True

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        # A partial batch would use up the client's quota, and the client discards it.
        view.whole_batches = request.bounded
        walk(FetchResponse(addresses, request.fetch_rewrite), reader, view)
