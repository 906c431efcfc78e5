"""ConnectionHost: what a connection asks of the gateway that it belongs to."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from proxy.relay.intercepted import Intercepted
from proxy.relay.relay import Relay

if TYPE_CHECKING:
    from proxy.server.connection.connection import Connection


class ConnectionHost(Protocol):
    """Where connections come from and go to."""

    def opened(self, connection: "Connection", address: str) -> Relay | None:
        """A client has connected from this address; None: it is one too many."""

    async def connect(self, connection: "Connection", broker: asyncio.Protocol) -> None:
        """Connect to the broker; UpstreamUnavailable says why not."""

    def ended(self, connection: "Connection", reason: str) -> None:
        """The connection is over; `reason` is the metric's label. Its sockets may still have data to send."""

    def left(self, connection: "Connection") -> None:
        """Both of the connection's sockets are closed; comes after ended()."""

    def start_connecting(self, connection: "Connection", broker: asyncio.Protocol) -> None:
        """Have `connection.reach_broker` run in the background."""

    def start_answering(self, connection: "Connection", request: Intercepted) -> None:
        """Have the request answered in the background: by connection.answer(), or the connection ends."""
