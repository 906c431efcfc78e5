"""PlanTurns: when the fetches of a consumer may be planned, all its connections together.

A plan takes about a microsecond for each partition that quotas may omit. A pause after each plan of a
connection does not bound a client with many connections, so the connections of a client take turns, too. A
client is a principal, or the address of those without one.
"""

from typing import Final, final

from proxy.quota.identity import ClientKey, Identity, client_key

SHORT_SECONDS: Final = 0.01
"""A shorter wait counts as none."""
PAUSE_SECONDS_PER_PARTITION: Final = 20e-6
"""After a plan, the next plan of the connection waits for this time per partition, unless that is shorter
than SHORT_SECONDS.
"""
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


@final
class ConnectionTurns:
    """The turns of one connection."""

    def __init__(self, turns: PlanTurns) -> None:
        self._turns: Final = turns
        self._taken: tuple[float, Identity, int] | None = None
        """The turn that the connection has taken and not used: when it is, of which client, and for how many
        partitions.
        """
        self.pause_until = 0.0
        """When the pause after the last plan ends; 0.0 for no pause."""

    def next_at(self, who: Identity, partitions: int, now: float) -> float:
        """When the next plan may be made. The connection takes a turn unless it has one."""
        taken = self._taken
        if taken is None:
            taken = self._taken = (self._turns.take(who, partitions, now), who, partitions)
        return max(self.pause_until, taken[0])

    def use(self) -> None:
        """Use the turn that was taken."""
        self._taken = None

    def planned(self, partitions: int, now: float) -> None:
        """Begin the pause after a plan of so many partitions of a consumer; 0 for the plan of a follower."""
        pause = partitions * PAUSE_SECONDS_PER_PARTITION
        self.pause_until = now + pause if pause >= SHORT_SECONDS else 0.0

    def end(self) -> None:
        """Give back the turn that was not used, because the connection is over."""
        if self._taken is not None:
            self._turns.give_back(self._taken[1], self._taken[2])
            self._taken = None
