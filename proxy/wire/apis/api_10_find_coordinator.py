"""FindCoordinator: v0-6. Read for the coordinators' addresses.

v1 throttle_time_ms, first in the response, and error_message; v3 flexible; v4 an array of coordinators
(KIP-699).
"""

from typing import Final, final

from proxy.wire.addresses import Addresses, RewrittenBroker, rewrite_address, rewrite_repeated
from proxy.wire.api_keys import FIND_COORDINATOR
from proxy.wire.apis.api import Api
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView

MANY_FROM: Final = 4
"""The first version with several keys (KIP-699)."""
MAX_KEYS: Final = 10_000
"""The most keys of a request. A key takes a byte, and its coordinator a quarter of a microsecond: all
coordinators of a response are read in one turn of the event loop. Few brokers have many groups, so the
address of each broker is looked up once.
"""


@final
class FindCoordinator(Api):
    key = FIND_COORDINATOR
    oldest = 0
    newest = 6
    flexible_from = 3

    def read_request(self, reader: Reader, view: RequestView) -> None:
        if view.api_version >= MANY_FROM:
            reader.take(1)  # key_type
            keys = reader.count(True)
            if keys > MAX_KEYS:
                raise Malformed(f"a request for {keys} coordinators; the proxy takes {MAX_KEYS} at most")
        view.cursor.done = True

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        version = view.api_version
        view.errors = None  # of the part that had arrived, if the response is read again from its start
        addresses.begin()
        if version >= 1:
            view.throttle_at = reader.offset
            view.throttle_time_ms = reader.i32()
        if version < MANY_FROM:
            view.note_error(reader.i16())
            if version >= 1:
                reader.skip_string(view.flexible)  # error_message
            rewrite_address(reader, view, addresses)
        else:
            left = reader.count(True)
            view.cursor.room -= left
            brokers: dict[int, RewrittenBroker] = {}
            while left > 0:
                reader.skip_string(True)  # key
                rewrite_repeated(reader, view, addresses, brokers)
                view.note_error(reader.i16())
                reader.skip_string(True)  # error_message
                reader.skip_tags()
                left -= 1
        addresses.require()
        view.cursor.done = True
