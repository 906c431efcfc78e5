"""Admission: limits how many client connections are open, in all and from one address."""

from typing import Final, Protocol


class Admission(Protocol):
    """Whether a client connection may be opened."""

    def enter(self, address: str) -> str:
        """Count a connection from this address, or return the limit that it would exceed and count
        nothing.
        """

    def leave(self, address: str) -> None:
        """Count one connection less; follows each enter() that returned an empty string."""


class LimitedAdmission:
    """The limits of the settings; all client listeners share them."""

    def __init__(self, max_connections: int, max_per_address: int) -> None:
        """Set `max_per_address` to 0 for no limit per address."""
        self._max_connections: Final = max_connections
        self._max_per_address: Final = max_per_address
        self._total = 0
        self._by_address: Final[dict[str, int]] = {}

    def enter(self, address: str) -> str:
        if self._total >= self._max_connections:
            return f"limits.max_connections ({self._max_connections}) is reached"
        here = self._by_address.get(address, 0)
        if self._max_per_address and here >= self._max_per_address:
            return f"limits.max_connections_per_ip ({self._max_per_address}) is reached"
        self._total += 1
        self._by_address[address] = here + 1
        return ""

    def leave(self, address: str) -> None:
        self._total -= 1
        here = self._by_address[address] - 1
        if here:
            self._by_address[address] = here
        else:
            del self._by_address[address]


class UnlimitedAdmission:
    """Admits every connection, as between brokers: clients must not be able to use up the brokers' share."""

    def enter(self, address: str) -> str:
        return ""

    def leave(self, address: str) -> None:
        pass
