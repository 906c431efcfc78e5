"""Pauses: why a socket is not read from."""

import asyncio
from typing import Final, final

from mypy_extensions import i64 as native

MUTED: Final = 1
BROKER_FULL: Final = 2
CONNECTING: Final = 4
DRAINING: Final = 8
UNSERVED: Final = 16
RESPONSES_UNREAD: Final = 32
"""Why a client is not read from."""
BULK: Final = 64
"""Why a client or a broker is not read from in this turn of the event loop: see BulkReads."""
BY_CONNECTION_RATE: Final = "connection_rate"
BY_LIST: Final = "list_turn"
BY_QUOTA: Final = "throttled"
BY_CONNECTING: Final = "connecting"
BY_BROKER: Final = "broker_full"
BY_CLIENT: Final = "responses_unread"
PAUSE_REASONS: Final = (BY_CONNECTION_RATE, BY_LIST, BY_QUOTA, BY_CONNECTING, BY_BROKER, BY_CLIENT)
"""Why a client is not read from, as the metric's label `reason`. Of several reasons the first counts."""
CLIENT_FULL: Final = 1
UNREAD: Final = 2
"""Why a broker is not read from."""


@final
class Pauses:
    """The reasons of one socket. It is read while it has none."""

    __slots__ = ("_reasons",)

    def __init__(self) -> None:
        self._reasons: native = 0

    @property
    def any(self) -> bool:
        """Whether there is a reason now."""
        return self._reasons != 0

    def has(self, why: native) -> bool:
        """Whether any of these is a reason now."""
        return self._reasons & why != 0

    def clear(self) -> None:
        """Forget all reasons: the socket is a new one."""
        self._reasons = 0

    def change(self, transport: asyncio.Transport | None, why: native, on: bool) -> bool:
        """Add or remove a reason; return whether reading resumes.

        If `transport` is None, only the reason is stored.
        """
        before = self._reasons
        self._reasons = before | why if on else before & ~why
        if transport is None or transport.is_closing():
            return False
        if self._reasons and not before:
            transport.pause_reading()
        elif before and not self._reasons:
            transport.resume_reading()
            return True
        return False
