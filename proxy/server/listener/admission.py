"""Admission: how many client connections there may be, in all and from one address."""

from typing import Final


class Admission:
    """Counts connections; `max_per_address` 0 is no limit."""

    def __init__(self, max_connections: int, max_per_address: int) -> None:
        self._max_connections: Final = max_connections
        self._max_per_address: Final = max_per_address
        self._total = 0
        self._by_address: Final[dict[str, int]] = {}

    def enter(self, address: str) -> str:
        """Count one more; or, with a sentence that says which limit is reached, do not."""
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
