"""ConnectionHost: what a connection asks of the gateway that it belongs to."""

import asyncio
from typing import Protocol, TypeVar

from proxy.relay.close_reasons import RelayError
from proxy.relay.intercepted import Intercepted
from proxy.relay.relay import Relay
from proxy.wire.addresses import BrokerAddress

C = TypeVar("C", contravariant=True)
"""The connection; a parameter, so that this file needs not import it."""


class ConnectionHost(Protocol[C]):
    """Creates the relays of its connections, and learns when a connection ends."""

    def opened(self, connection: C, address: str) -> Relay | None:
        """A client has connected from this address; None rejects it."""

    async def connect(self, connection: C, broker: asyncio.Protocol) -> None:
        """Connect to the broker. Raises UpstreamUnavailable."""

    def reroute(self, connection: C) -> Relay | None:
        """Choose another broker for a bootstrap connection whose broker cannot be reached; None if there is
        none.
        """

    def failed(self, connection: C, error: RelayError) -> None:
        """Log the error with which the connection is about to end."""

    def ended(self, connection: C, reason: str) -> None:
        """The connection is over; `reason` is the metric's label. Its sockets may still have data to send."""

    def left(self, connection: C) -> None:
        """Both of the connection's sockets are closed; comes after ended()."""

    def learn_broker(self, broker: BrokerAddress) -> None:
        """Put a broker that a response has named into the table of addresses, with its port bound."""

    def ask_names(self) -> None:
        """Ask the cluster for the topics' names that requests want."""

    def start_connecting(self, connection: C, broker: asyncio.Protocol) -> None:
        """Run `connection.reach_broker` in the background."""

    def start_answering(self, connection: C, request: Intercepted) -> None:
        """Answer an intercepted request in the background, with connection.answer() or by closing it."""
