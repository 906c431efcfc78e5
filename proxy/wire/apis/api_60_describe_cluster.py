"""DescribeCluster: v0-2. Read for the brokers' addresses.

throttle_time_ms first in the response; flexible from v0; v1 endpoint_type (KIP-919); v2 is_fenced.
"""

from typing import Final, final

from proxy.wire.addresses import Addresses, rewrite_address
from proxy.wire.api_keys import DESCRIBE_CLUSTER
from proxy.wire.apis.api import Api
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView

BROKERS: Final = 1
"""endpoint_type: the nodes are brokers. Controllers (2) are not reached through the proxy."""


@final
class DescribeCluster(Api):
    key = DESCRIBE_CLUSTER
    oldest = 0
    newest = 2
    flexible_from = 0

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        view.throttle_at = reader.offset
        view.throttle_time_ms = reader.i32()
        error_code = reader.i16()
        reader.skip_string(True)  # error_message
        endpoint_type = reader.u8() if view.api_version >= 1 else BROKERS
        reader.skip_string(True)  # cluster_id
        reader.take(4)  # controller_id
        addresses.begin()
        left = reader.count(True) if endpoint_type == BROKERS else 0
        while left > 0:
            rewrite_address(reader, view, addresses)
            reader.skip_string(True)  # rack
            if view.api_version >= 2:
                reader.take(1)  # is_fenced
            reader.skip_tags()
            left -= 1
        addresses.require()
        view.note_error(error_code)
        view.cursor.done = True
