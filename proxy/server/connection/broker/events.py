"""BrokerEvents: the events of the broker's socket, for its connection.

A mypyc trait, so that the files of this folder need not import connection, and a call stays a native one.
"""

from mypy_extensions import trait


@trait
class BrokerEvents:
    """The connection, as its broker's socket sees it."""

    def broker_connected(self) -> None:
        """The broker's socket is connected."""
        raise NotImplementedError

    def broker_active(self) -> bool:
        """The broker has sent bytes. Return False if the connection has ended and nothing reads them."""
        raise NotImplementedError

    def broker_sent(self, data: bytes) -> None:
        """The broker's next bytes, for the relay."""
        raise NotImplementedError

    def broker_forwardable(self) -> int:
        """Return the number of the broker's following bytes that may go to the client past the relay."""
        raise NotImplementedError

    def broker_forwarded(self, size: int) -> None:
        """`size` of these bytes have gone to the client."""
        raise NotImplementedError

    def broker_full(self, full: bool) -> None:
        """Whether the broker's socket takes no more for now."""
        raise NotImplementedError

    def broker_lost(self) -> None:
        """The broker's socket is closed."""
        raise NotImplementedError
