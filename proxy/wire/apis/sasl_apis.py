"""SaslHandshake and SaslAuthenticate: the relay follows logins in them (KIP-43, KIP-152)."""

from typing import Final

from proxy.wire import api_keys
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.edit import count, i16, i32, i64, string
from proxy.wire.error_codes import SASL_AUTHENTICATION_FAILED

NEVER: Final = 1 << 15
"""A flexible_from above every version: no version of the API is flexible."""
SASL_HANDSHAKE: Final = InterceptedApi(api_keys.SASL_HANDSHAKE, newest=1, flexible_from=NEVER)
SASL_AUTHENTICATE: Final = InterceptedApi(api_keys.SASL_AUTHENTICATE, newest=2, flexible_from=2)
MAX_ERROR_MESSAGE: Final = 1000
"""Characters of an error_message: a name in it may be longer than its length field can say."""


def authentication_failed(correlation_id: int, version: int, why: str) -> bytes:
    """Return a SaslAuthenticate response with SASL_AUTHENTICATION_FAILED (58) and the error_message `why`, as
    a whole frame.
    """
    flexible = version >= SASL_AUTHENTICATE.flexible_from
    tags = b"\0" if flexible else b""
    body = i32(correlation_id) + tags + i16(SASL_AUTHENTICATION_FAILED)
    body += string(why[:MAX_ERROR_MESSAGE], flexible)
    body += count(0, flexible)  # auth_bytes
    if version >= 1:
        body += i64(0)  # session_lifetime_ms
    body += tags
    return i32(len(body)) + body
