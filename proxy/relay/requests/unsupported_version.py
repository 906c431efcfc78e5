"""The local responses to requests of versions that the proxy does not read, as whole frames."""

from proxy.wire.api_keys import API_VERSIONS
from proxy.wire.apis.api import Api, RequestHeader
from proxy.wire.edit import i16, i32
from proxy.wire.error_codes import UNSUPPORTED_VERSION
from proxy.wire.errors import UnsupportedVersion
from proxy.wire.frames import Frame


def reject_version(frame: Frame, header: RequestHeader, api: Api) -> bytes:
    """Return the response to a request of a version that the proxy does not read, as a broker would: to
    ApiVersions, a response with the versions. Any other request raises UnsupportedVersion, and so does an
    ApiVersions request that is cut through, because the rest of it would have no reader.
    """
    if header.api_key != API_VERSIONS or not frame.complete:
        raise UnsupportedVersion(
            f"{api.name} v{header.api_version} is not supported; ApiVersions offers up to v{api.newest}"
        )
    return unsupported_api_versions(header.correlation_id, api.oldest, api.newest)


def unsupported_api_versions(correlation_id: int, oldest: int, newest: int) -> bytes:
    """ApiVersionsResponse v0 with error 35 and the versions of ApiVersions itself, as a broker responds
    (KIP-511).
    """
    api_versions = i16(API_VERSIONS) + i16(oldest) + i16(newest)
    body = i32(correlation_id) + i16(UNSUPPORTED_VERSION) + i32(1) + api_versions
    return i32(len(body)) + body
