"""StreamedSide: a side of a connection, as its stream sees it.

A mypyc trait, so that a call stays a native one.
"""

from mypy_extensions import trait


@trait
class StreamedSide:
    """The usual protocol of a side's transport, and what the relay says about the bytes from it."""

    def forwardable(self) -> int:
        """Return the number of following bytes that may go to the other side past the relay."""
        raise NotImplementedError

    def forwarded(self, size: int) -> None:
        """Note that `size` of these bytes have gone to the other side."""
        raise NotImplementedError

    def active(self) -> bool:
        """Note that bytes have arrived. Return False if the connection has ended and nothing reads them."""
        raise NotImplementedError

    def data_received(self, data: bytes) -> None:
        """Take the next bytes, for the relay."""
        raise NotImplementedError

    def eof_received(self) -> bool:
        """The peer sends no more. Return whether the transport stays open."""
        raise NotImplementedError

    def pause_writing(self) -> None:
        """This side takes no more for now."""
        raise NotImplementedError

    def resume_writing(self) -> None:
        """This side takes more again."""
        raise NotImplementedError

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        raise NotImplementedError
