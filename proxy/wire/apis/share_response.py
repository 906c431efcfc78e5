"""The common head and tail of the responses to ShareFetch and ShareAcknowledge (KIP-932).

throttle_time_ms first; flexible and with topic ids from the first version; NodeEndpoints in an ordinary array
at the end.
"""

from typing import Final, cast

from mypy_extensions import i64 as native

from proxy.wire.addresses import Addresses, rewrite_endpoints_array
from proxy.wire.reader import Reader
from proxy.wire.views import ResponseView, View
from proxy.wire.walk import Partitioned


class ShareResponse(Partitioned):
    """A response, without its partitions. Its items are the partitions with records."""

    topic_id_from = 0
    only_records = True
    lock_timeout_from: int
    """The first version with acquisition_lock_timeout_ms."""

    def __init__(self, addresses: Addresses) -> None:
        self.addresses: Final = addresses
        self.lock_ms: native = 0
        """acquisition_lock_timeout_ms, after read_error()."""

    def read_head(self, reader: Reader, view: View) -> bool:
        response = cast("ResponseView", view)
        response.throttle_at = reader.offset
        response.throttle_time_ms = reader.i32()
        error_code = self.read_error(reader, view.api_version)
        view.cursor.topics_left = reader.count(True)
        response.note_error(error_code)
        return True

    def read_error(self, reader: Reader, api_version: int) -> int:
        """Read from the error_code to the topics, and return it."""
        error_code = reader.i16()
        reader.skip_string(True)  # error_message
        if api_version >= self.lock_timeout_from:
            self.lock_ms = reader.i32()
        return error_code

    def read_tail(self, reader: Reader, view: View) -> None:
        rewrite_endpoints_array(reader, cast("ResponseView", view), self.addresses)
