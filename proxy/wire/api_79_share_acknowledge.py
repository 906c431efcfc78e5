"""ShareAcknowledge: v1-2 (KIP-932). Read for its NodeEndpoints.

throttle_time_ms first in the response; v2 acquisition_lock_timeout_ms; NodeEndpoints in an ordinary array at
the end.
"""

from typing import Final, cast, final

from proxy.wire.addresses import Addresses, rewrite_endpoints_array
from proxy.wire.apis import Api
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView, View
from proxy.wire.walk import Partitioned, walk


@final
class ShareAcknowledgeResponse(Partitioned):
    topic_id_from = 0

    def __init__(self, addresses: Addresses) -> None:
        self.addresses: Final = addresses

    def read_head(self, reader: Reader, view: View) -> bool:
        response = cast("ResponseView", view)
        response.throttle_at = reader.offset
        response.throttle_time_ms = reader.i32()
        reader.take(2)  # error_code
        reader.skip_string(True)  # error_message
        if view.api_version >= 2:
            reader.take(4)  # acquisition_lock_timeout_ms
        view.topics_left = reader.count(True)
        return True

    def read_partition(self, reader: Reader, view: View) -> int:
        reader.take(2)  # error_code
        reader.skip_string(True)  # error_message
        reader.take(8)  # current_leader: leader_id, leader_epoch
        reader.skip_tags()
        return 0

    def read_tail(self, reader: Reader, view: View) -> None:
        rewrite_endpoints_array(reader, cast("ResponseView", view), self.addresses)


@final
class ShareAcknowledge(Api):
    key = 79
    name = "ShareAcknowledge"
    oldest = 1
    newest = 2
    flexible_from = 0

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        walk(ShareAcknowledgeResponse(addresses), reader, view)
