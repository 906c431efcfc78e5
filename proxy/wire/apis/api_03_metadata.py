"""Metadata: v0-13. Read for the brokers' addresses, which stand before the topics.

v1 rack; v3 throttle_time_ms, first in the response; v9 flexible; v10 topic ids.
"""

from typing import final

from proxy.wire.addresses import Addresses, rewrite_address
from proxy.wire.api_keys import METADATA
from proxy.wire.apis.api import Api
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView


@final
class Metadata(Api):
    key = METADATA
    oldest = 0
    newest = 13
    flexible_from = 9

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        if view.api_version >= 3:
            view.throttle_at = reader.offset
            view.throttle_time_ms = reader.i32()
        left = reader.count(view.flexible)
        addresses.begin()
        while left > 0:
            rewrite_address(reader, view, addresses)
            if view.api_version >= 1:
                reader.skip_string(view.flexible)  # rack
            if view.flexible:
                reader.skip_tags()
            left -= 1
        addresses.require()
        if view.partial:
            # Topics follow, perhaps thousands: from here on the frame may be forwarded as it arrives.
            view.cursor.mark = reader.mark()
        view.cursor.done = True
