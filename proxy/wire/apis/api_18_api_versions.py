"""ApiVersions: v0-4. The response is cut to the versions that the proxy supports.

v1 throttle_time_ms, after the keys; v3 flexible body, but the response header never is (KIP-511: the client
must be able to read it before it knows the version). A broker that does not support the version responds in
v0's form with error 35.
"""

from typing import Final, final

from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import API_VERSIONS
from proxy.wire.apis.api import Api
from proxy.wire.edit import Edit, count, i16
from proxy.wire.error_codes import UNSUPPORTED_VERSION
from proxy.wire.errors import ProtocolError
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView


@final
class ApiVersions(Api):
    key = API_VERSIONS
    oldest = 0
    newest = 4
    flexible_from = 3

    def __init__(self, apis: list[Api | None]) -> None:
        self._apis: Final = apis
        """By key: the APIs that the proxy reads or intercepts."""

    def flexible_response_header(self, api_version: int) -> bool:
        return False

    def read_request(self, reader: Reader, view: RequestView) -> None:
        view.cursor.done = True
        if view.api_version < 3:
            return
        try:
            view.client_software = f"{reader.string(True)} {reader.string(True)}"
        except ProtocolError:
            # The broker rejects the request, so nothing is lost without the name.
            return

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        error_code = reader.i16()
        flexible = view.flexible and error_code != UNSUPPORTED_VERSION
        count_at = reader.offset
        announced = reader.count(flexible)
        count_end = reader.offset
        kept = announced
        left = announced
        while left > 0:
            if not self._read_api(reader, view, flexible):
                kept -= 1
            left -= 1
        if kept != announced:
            view.edits.insert(0, Edit(count_at, count_end, count(kept, flexible)))
        if view.api_version >= 1 and (flexible or not view.flexible):
            view.throttle_at = reader.offset
            view.throttle_time_ms = reader.i32()
        view.note_error(error_code)
        view.cursor.done = True

    def _read_api(self, reader: Reader, view: ResponseView, flexible: bool) -> bool:
        """Read one key with its versions, and limit them to those that the proxy reads.

        Return whether a version remains.
        """
        start = reader.offset
        key = reader.i16()
        oldest = reader.i16()
        newest_at = reader.offset
        newest = reader.i16()
        if flexible:
            reader.skip_tags()
        api = self._apis[key] if 0 <= key < len(self._apis) else None
        if api is None or (newest <= api.newest and oldest >= api.oldest):
            return True
        if oldest > api.newest or newest < api.oldest:
            view.edits.append(Edit(start, reader.offset, b""))
            return False
        # The versions that both support: a broker may also have older ones than the proxy reads.
        both = i16(max(oldest, api.oldest)) + i16(min(newest, api.newest))
        view.edits.append(Edit(newest_at - 2, newest_at + 2, both))
        return True
