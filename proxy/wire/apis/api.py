"""Api: which versions of an API the proxy supports, and how it reads them; and the request header.

Requests and responses of other APIs are forwarded as they are, in any version.
"""

from typing import Final, final

from mypy_extensions import i64 as native
from mypy_extensions import mypyc_attr

from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import api_name
from proxy.wire.errors import Malformed, UnsupportedVersion
from proxy.wire.reader import Reader, i16_at, i32_at
from proxy.wire.views import RequestView, ResponseView

_FIXED_BYTES: Final = 10
"""The fixed part of a request header: api_key, api_version, correlation_id and the length of client_id."""


class Api:
    """The versions of one API, and how its messages are read. The base class reads nothing of a body."""

    key: int
    oldest: int
    newest: int
    flexible_from: int
    """The first version with compact strings and tagged fields, in the body and in both headers."""

    @property
    def name(self) -> str:
        return api_name(self.key)

    def check_version(self, api_version: int) -> None:
        """Raise UnsupportedVersion for a version that ApiVersions does not offer through the proxy."""
        if not self.oldest <= api_version <= self.newest:
            raise UnsupportedVersion(
                f"{self.name} v{api_version} is not supported; "
                f"ApiVersions offers v{self.oldest} to v{self.newest}"
            )

    def flexible_response_header(self, api_version: int) -> bool:
        return api_version >= self.flexible_from

    def read_request(self, reader: Reader, view: RequestView) -> None:
        """Read the body into the view, and set `view.cursor.done` at its end."""
        view.cursor.done = True

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        """Read the body into the view, with edits that replace the brokers' addresses; set
        `view.cursor.done`.
        """
        view.cursor.done = True


@final
@mypyc_attr(free_list_len=1)
class RequestHeader:
    """RequestHeader v1 and later: api_key, api_version, correlation_id, client_id (nullable; empty here)."""

    __slots__ = ("api_key", "api_version", "correlation_id", "raw_client_id")

    def __init__(
        self, api_key: native, api_version: native, correlation_id: native, raw_client_id: bytes
    ) -> None:
        self.api_key: Final = api_key
        self.api_version: Final = api_version
        self.correlation_id: Final = correlation_id
        self.raw_client_id: Final = raw_client_id
        """The bytes of client_id, which are UTF-8 unless the client is faulty."""

    @property
    def size(self) -> int:
        """The bytes up to the client id, with it; tags follow in flexible versions."""
        return _FIXED_BYTES + len(self.raw_client_id)


def read_request_header(reader: Reader) -> RequestHeader:
    """Read the header up to its client id, which all versions have alike; the caller reads the tags."""
    at = reader.take(8)  # may change `data`; one step is cheaper than three
    data = reader.data
    api_key = i16_at(data, at)
    api_version = i16_at(data, at + 2)
    correlation_id = i32_at(data, at + 4)
    if api_key < 0 or api_version < 0:
        raise Malformed(f"a request has api_key {api_key} and api_version {api_version}")
    return RequestHeader(api_key, api_version, correlation_id, reader.raw_string(False))
