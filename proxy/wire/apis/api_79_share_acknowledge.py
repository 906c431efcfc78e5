"""ShareAcknowledge: v1-2 (KIP-932). Read for its NodeEndpoints; v2 acquisition_lock_timeout_ms."""

from typing import final

from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import SHARE_ACKNOWLEDGE
from proxy.wire.apis.api import Api
from proxy.wire.apis.share_response import ShareResponse
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView, View
from proxy.wire.walk import walk


@final
class ShareAcknowledgeResponse(ShareResponse):
    lock_timeout_from = 2

    def read_partition(self, reader: Reader, view: View) -> int:
        view.cursor.error_code = reader.i16()
        reader.skip_string(True)  # error_message
        reader.take(8)  # current_leader: leader_id, leader_epoch
        reader.skip_tags()
        return 0


@final
class ShareAcknowledge(Api):
    key = SHARE_ACKNOWLEDGE
    oldest = 1
    newest = 2
    flexible_from = 0

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        walk(ShareAcknowledgeResponse(addresses), reader, view)
