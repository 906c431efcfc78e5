"""FindCoordinator: v0-6. Read for the coordinators' addresses.

v1 throttle_time_ms, first in the response, and error_message; v3 flexible; v4 an array of coordinators
(KIP-699).
"""

from typing import Final, final

from proxy.wire.addresses import Addresses, rewrite_address
from proxy.wire.api_keys import FIND_COORDINATOR
from proxy.wire.apis.api import Api
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView

NO_ERRORS: Final[list[int]] = []


@final
class FindCoordinator(Api):
    key = FIND_COORDINATOR
    oldest = 0
    newest = 6
    flexible_from = 3

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        version = view.api_version
        addresses.begin()
        if version >= 1:
            view.throttle_at = reader.offset
            view.throttle_time_ms = reader.i32()
        errors: list[int] = NO_ERRORS
        if version < 4:
            error_code = reader.i16()
            if error_code != 0:
                errors = [error_code]
            if version >= 1:
                reader.skip_string(view.flexible)  # error_message
            rewrite_address(reader, view, addresses)
        else:
            left = reader.count(True)
            while left > 0:
                reader.skip_string(True)  # key
                rewrite_address(reader, view, addresses)
                error_code = reader.i16()
                if error_code != 0:
                    errors = [*errors, error_code]
                reader.skip_string(True)  # error_message
                reader.skip_tags()
                left -= 1
        addresses.require()
        for error_code in errors:
            view.note_error(error_code)
        view.cursor.done = True
