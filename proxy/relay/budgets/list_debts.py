"""ListDebts: until when each client has paid for the request time of its lists.

`request_percentage` charges a request on its response, and then makes the connection wait for a second at
most, as Kafka does. A list takes a broker many milliseconds, so the lists of a hundred connections would take
far more than the limit. The next list of a client therefore waits, on any connection, until the limit has
refilled what the lists before it used. Other requests do not wait for this, so a client's heartbeats go on.
"""

from typing import Final, final

from proxy.quota.identity import ClientKey

LineKey = tuple[int, ClientKey]
"""The node id of a broker, and a client."""

DEBTS_AT_MOST: Final = 1000
"""If there are more debts, those that are paid are forgotten."""


@final
class ListDebts:
    """The debts of all clients of a process."""

    __slots__ = ("_clean_at", "_paid_at")

    def __init__(self) -> None:
        self._paid_at: Final[dict[LineKey, float]] = {}
        self._clean_at = DEBTS_AT_MOST

    def __len__(self) -> int:
        return len(self._paid_at)

    def add(self, key: LineKey, seconds: float, most: float, now: float) -> None:
        """Add what a list has used: the limit refills it within `seconds`. Within `most` seconds, it refills
        all that the client owes.
        """
        if len(self._paid_at) >= self._clean_at:
            self._clean(now)
        paid_at = max(self._paid_at.get(key, now), now) + seconds
        self._paid_at[key] = min(paid_at, now + most)

    def wait_seconds(self, key: LineKey, now: float) -> float:
        """The seconds until a client has paid; 0.0 if it owes nothing."""
        paid_at = self._paid_at.get(key, 0.0)
        return paid_at - now if paid_at > now else 0.0

    def _clean(self, now: float) -> None:
        for key in [key for key, paid_at in self._paid_at.items() if paid_at <= now]:
            del self._paid_at[key]
        self._clean_at = max(2 * len(self._paid_at), DEBTS_AT_MOST)
