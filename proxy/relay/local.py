"""Answers that the proxy gives itself, as whole frames."""

from proxy.wire.edit import i16, i32
from proxy.wire.error_codes import UNSUPPORTED_VERSION


def unsupported_api_versions(correlation_id: int, oldest: int, newest: int) -> bytes:
    """ApiVersionsResponse v0 with error 35 and the versions of ApiVersions itself, as a broker answers
    (KIP-511).
    """
    api_versions = i16(18) + i16(oldest) + i16(newest)
    body = i32(correlation_id) + i16(UNSUPPORTED_VERSION) + i32(1) + api_versions
    return i32(len(body)) + body
