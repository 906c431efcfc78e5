"""Messages of SASL logins as frames, of every version."""

from typing import Any

from kio.schema.errors import ErrorCode

from tests.support.messages.kio_messages import (
    framed,
    request_frame,
    request_type,
    response_frame,
    response_type,
)

HANDSHAKE = 17
AUTHENTICATE = 36
RAW: int = -1
"""In place of a version of SaslAuthenticate: the messages are bare."""


def handshake(correlation_id: int, mechanism: str, version: int = 1) -> bytes:
    return request_frame(request_type(HANDSHAKE, version)(mechanism=mechanism), correlation_id, "client")


def handshaken(correlation_id: int, version: int = 1, error: ErrorCode = ErrorCode.none) -> bytes:
    response = response_type(HANDSHAKE, version)(error_code=error, mechanisms=("PLAIN", "GSSAPI"))
    return response_frame(response, correlation_id)


def message(correlation_id: int, token: bytes, version: int = 2) -> bytes:
    """A client's message of a login."""
    if version == RAW:
        return framed(token)
    return request_frame(request_type(AUTHENTICATE, version)(auth_bytes=token), correlation_id, "client")


def replied(
    correlation_id: int, token: bytes = b"", version: int = 2, error: ErrorCode = ErrorCode.none
) -> bytes:
    """The broker's response to such a message."""
    if version == RAW:
        return framed(token)
    fields: dict[str, Any] = {"error_code": error, "error_message": None, "auth_bytes": token}
    if error is not ErrorCode.none:
        fields["error_message"] = "no"
    return response_frame(response_type(AUTHENTICATE, version)(**fields), correlation_id)
