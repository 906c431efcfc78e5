"""Origin: where a client's connection comes from."""

from typing import Final, final


@final
class Origin:
    """The address of a client, as its socket has it, or as the load balancer before the proxy states it."""

    __slots__ = ("address", "peer", "stated")

    def __init__(self, address: str, peer: str, stated: bool = False) -> None:
        self.address: Final = address
        """The IP address."""
        self.peer: Final = peer
        """The address with the port, for the log."""
        self.stated: Final = stated
        """Whether the connection began with a PROXY header. Its address then says nothing about this host."""
