"""Admission: limits how many client connections are open, in all and from one address."""

from collections.abc import Callable
from typing import Final, Protocol

from proxy.server.listener.accept.acceptor import Room


class Admission(Room, Protocol):
    """Whether a client connection may be opened."""

    def enter(self, address: str) -> str:
        """Count a connection from this address, or return the limit that it would exceed and count
        nothing.
        """

    def leave(self, address: str) -> None:
        """Count one connection less; follows each enter() that returned an empty string."""

    def hold(self) -> None:
        """Count a connection whose address is not known yet."""

    def release(self) -> None:
        """Stop counting it: its address is known, or it has ended. Follows each hold()."""


class Balance(Protocol):
    """Distributes connections among the processes that accept at the same ports."""

    def show(self, connections: int) -> None:
        """Tell the others how many connections this process has."""

    def full(self) -> None:
        """Tell the others that this process accepts no connection now."""

    def drain(self) -> None:
        """Leave all connections to the others, as long as there is another process."""

    def others_first(self, connections: int) -> bool:
        """Whether another process should accept the next connection, if this one has so many."""


class LimitedAdmission:
    """The limits of the settings; all client listeners share them.

    A connection beyond the limit of all is accepted later. One beyond the limit of its address is closed, as
    in Kafka (max.connections, max.connections.per.ip).
    """

    def __init__(self, max_connections: int, max_per_address: int, balance: Balance | None = None) -> None:
        """Set `max_per_address` to 0 for no limit per address. `balance`: None if no other process accepts at
        the same ports.
        """
        self._balance: Final = balance
        self._max_connections: Final = max_connections
        self._max_per_address: Final = max_per_address
        self._total = 0
        self._by_address: Final[dict[str, int]] = {}
        self._waiting: list[Callable[[], None]] = []

    @property
    def total(self) -> int:
        """The connections that count against the limit of all."""
        return self._total

    @property
    def full(self) -> bool:
        return self._total >= self._max_connections

    @property
    def others_first(self) -> bool:
        return self._balance is not None and self._balance.others_first(self._total)

    def accepts(self) -> None:
        self._show()

    def call_with_room(self, call: Callable[[], None]) -> None:
        if self._balance is not None:
            self._balance.full()
        self._waiting.append(call)

    def enter(self, address: str) -> str:
        here = self._by_address.get(address, 0)
        if self._max_per_address and here >= self._max_per_address:
            return f"limits.max_connections_per_ip ({self._max_per_address}) is reached"
        self._by_address[address] = here + 1
        self.hold()
        return ""

    def leave(self, address: str) -> None:
        here = self._by_address[address] - 1
        if here:
            self._by_address[address] = here
        else:
            del self._by_address[address]
        self.release()

    def hold(self) -> None:
        self._total += 1
        self._show()

    def release(self) -> None:
        self._total -= 1
        self._show()
        if self._waiting and not self.full:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()

    def _show(self) -> None:
        if self._balance is not None:
            self._balance.show(self._total)


class UnlimitedAdmission:
    """Admits every connection, as between brokers: clients must not be able to use up the brokers' share."""

    full: Final = False
    others_first: Final = False

    def accepts(self) -> None:
        pass

    def call_with_room(self, call: Callable[[], None]) -> None:
        call()

    def enter(self, address: str) -> str:
        return ""

    def leave(self, address: str) -> None:
        pass

    def hold(self) -> None:
        pass

    def release(self) -> None:
        pass
