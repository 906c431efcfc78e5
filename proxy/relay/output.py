"""RelayOutput: what a call of a relay has brought about, for the shell to act on."""

from typing import Final, final

from proxy.relay.intercepted import Intercepted
from proxy.wire.addresses import BrokerAddress
from proxy.wire.reader import NOTHING

NO_REQUESTS: Final[list[Intercepted]] = []
NO_BROKERS: Final[list[BrokerAddress]] = []
"""Shared; never changed."""


@final
class RelayOutput:
    """Each relay has one, which every call fills anew: the shell acts on it before it calls again.

    Its lists are the shell's to keep.
    """

    __slots__ = (
        "broker_responses",
        "client_muted",
        "holds_memory",
        "intercepted",
        "names_wanted",
        "next_timer",
        "responses_delayed",
        "to_broker",
        "to_client",
        "unknown_brokers",
    )

    def __init__(self) -> None:
        self.to_broker = NOTHING
        """Bytes for the broker, in pieces."""
        self.to_client = NOTHING
        """Bytes for the client, in pieces."""
        self.intercepted = NO_REQUESTS
        """Requests that the proxy answers: each wants one Relay.answer(). No further request is read before.
        """
        self.broker_responses = NOTHING
        """What the broker has responded to Relay.ask_broker(): header and body, without the length."""
        self.unknown_brokers = NO_BROKERS
        """Brokers that a response names and the table of addresses lacks. The response waits: the shell puts
        them into the table and calls Relay.brokers_known().
        """
        self.names_wanted = False
        """Whether TopicNames.wanted has ids that the shell has to ask the cluster for."""
        self.client_muted = False
        """Whether nothing may be read from the client; a request that is partly there is still read on."""
        self.holds_memory = False
        """Whether bytes for the broker are in memory that connections share: the shell calls
        Relay.broker_took_all() when none of them waits to be sent.
        """
        self.responses_delayed = False
        """Whether no response may leave for the client now: the broker's had better stay in its socket."""
        self.next_timer = 0.0
        """When Relay.handle_timer() is due; 0.0 for never."""

    def clear(self) -> None:
        """Begin a call: what the last one has brought about is done."""
        self.to_broker = NOTHING
        self.to_client = NOTHING
        self.intercepted = NO_REQUESTS
        self.broker_responses = NOTHING
        self.unknown_brokers = NO_BROKERS

    def take_unknown_brokers(self) -> list[BrokerAddress]:
        """The unknown brokers, which the shell learns now."""
        brokers = self.unknown_brokers
        self.unknown_brokers = NO_BROKERS
        return brokers

    def send_to_broker(self, pieces: list[bytes]) -> None:
        """Add bytes for the broker; the list is no longer the caller's."""
        if self.to_broker:
            self.to_broker.extend(pieces)
        else:
            self.to_broker = pieces

    def send_to_client(self, pieces: list[bytes]) -> None:
        """Add bytes for the client; the list is no longer the caller's."""
        if self.to_client:
            self.to_client.extend(pieces)
        else:
            self.to_client = pieces

    def intercept(self, request: Intercepted) -> None:
        """Hand out a request that the proxy answers."""
        self.intercepted = [*self.intercepted, request]

    def add_broker_response(self, payload: bytes) -> None:
        """Hand out what the broker has responded to the proxy."""
        self.broker_responses = [*self.broker_responses, payload]
