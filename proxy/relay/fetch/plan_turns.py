"""PlanTurns: when the fetches of a client may be planned, all its connections together.

A plan takes about a microsecond for each partition that quotas may omit. A pause after each plan of a
connection does not bound a client with many connections, so the connections of a client take turns, too. A
client is a principal, or the address of those without one.
"""

from typing import Final, final

from proxy.quota.identity import ClientKey, Identity, client_key

SHORT_SECONDS: Final = 0.01
"""A shorter wait counts as none."""
SECONDS_PER_PARTITION: Final = 4e-6
"""Plans of one client take about a quarter of the event loop's time at most."""
CLIENTS_AT_MOST: Final = 1000
"""Clients of which the next turn is kept, before those whose turn has come are dropped."""


@final
class PlanTurns:
    """The turns of all connections of a process."""

    def __init__(self) -> None:
        self._free_at: Final[dict[ClientKey, float]] = {}
        """When the plans that the client has begun, or waits for, are over."""

    def take(self, who: Identity, partitions: int, now: float) -> float:
        """Take a client's next turn, for a plan of some partitions; return when it is, `now` or later."""
        key = client_key(who)
        at = max(self._free_at.get(key, 0.0), now)
        if len(self._free_at) >= CLIENTS_AT_MOST and key not in self._free_at:
            self._drop_past(now)
        self._free_at[key] = at + partitions * SECONDS_PER_PARTITION
        return at if at - now >= SHORT_SECONDS else now

    def give_back(self, who: Identity, partitions: int) -> None:
        """Give back a turn that was taken and not used: its connection is over."""
        key = client_key(who)
        free_at = self._free_at.get(key, 0.0)
        if free_at > 0.0:
            self._free_at[key] = free_at - partitions * SECONDS_PER_PARTITION

    def _drop_past(self, now: float) -> None:
        for key in [key for key, free_at in self._free_at.items() if free_at <= now]:
            del self._free_at[key]
