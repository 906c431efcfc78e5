"""Origin: where a client's connection comes from."""

from typing import Final, final

from proxy.upstream.addresses import join_address


@final
class Origin:
    """The address of a client, as its socket has it, or as the load balancer before the proxy states it."""

    __slots__ = ("address", "port", "stated")

    def __init__(self, address: str, port: int, stated: bool = False) -> None:
        self.address: Final = address
        """The IP address."""
        self.port: Final = port
        self.stated: Final = stated
        """Whether the connection began with a PROXY header. Its address then says nothing about this host."""

    @property
    def peer(self) -> str:
        """The address with the port, for the log."""
        return join_address(self.address, self.port)
