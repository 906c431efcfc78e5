"""SaslHandshake and SaslAuthenticate: on listeners where clients are named by their logins the proxy watches
them pass, and clients are offered no version that it could not follow.
"""

from typing import Final

from proxy.wire import api_keys
from proxy.wire.intercepted import InterceptedApi

SASL_HANDSHAKE: Final = InterceptedApi(api_keys.SASL_HANDSHAKE, 1, 2)
"""No version is flexible."""
SASL_AUTHENTICATE: Final = InterceptedApi(api_keys.SASL_AUTHENTICATE, 2, 2)
