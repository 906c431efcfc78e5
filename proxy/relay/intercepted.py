"""Intercepted: a request that the proxy answers itself."""

from typing import Final, final

from proxy.relay.exchange import Exchange
from proxy.wire.api_keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from proxy.wire.apis.api import RequestHeader

MAX_INTERCEPTED_REQUEST_BYTES: Final = 16 << 20
"""The bytes of the largest intercepted request, because each is buffered whole."""
MAX_ALTER_QUOTAS_BYTES: Final = 4 << 20
"""The same for AlterClientQuotas, of which at most 10,000 changes are made. To read the rest of 16 MiB would
take a second of the event loop, although in small steps.
"""
MAX_DESCRIBE_BYTES: Final = 1 << 20
"""The same for DescribeClientQuotas, whose filter has a component for each of three types of entity."""


def max_request_bytes(api_key: int) -> int:
    """The size of the largest request that is intercepted."""
    if api_key == ALTER_CLIENT_QUOTAS:
        return MAX_ALTER_QUOTAS_BYTES
    return MAX_DESCRIBE_BYTES if api_key == DESCRIBE_CLIENT_QUOTAS else MAX_INTERCEPTED_REQUEST_BYTES


@final
class Intercepted:
    """One such request. The shell creates the response and gives it to Relay.answer()."""

    __slots__ = ("exchange", "frame", "header")

    def __init__(self, exchange: Exchange, header: RequestHeader, frame: bytes) -> None:
        self.exchange: Final = exchange
        self.header: Final = header
        self.frame: Final = frame
        """Header and body, without the length."""
