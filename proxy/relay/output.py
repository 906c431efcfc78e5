"""RelayOutput: the result of a call of a relay, for the shell to act on."""

from typing import Final, final

from proxy.relay.intercepted import Intercepted
from proxy.relay.outgoing import Outgoing
from proxy.wire.addresses import BrokerAddress
from proxy.wire.frames import Frame
from proxy.wire.reader import NOTHING

NO_REQUESTS: Final[list[Intercepted]] = []
NO_BROKERS: Final[list[BrokerAddress]] = []
"""A shared object that never changes."""


@final
class RelayOutput:
    """Each relay has one, which every call fills again. The shell acts on it before its next call.

    The shell may keep the lists.
    """

    __slots__ = (
        "broker_paused",
        "broker_responses",
        "client_muted",
        "for_broker",
        "for_client",
        "holds_memory",
        "intercepted",
        "names_wanted",
        "next_timer",
        "unknown_brokers",
        "unusual",
    )

    def __init__(self) -> None:
        self.for_broker: Final = Outgoing()
        self.for_client: Final = Outgoing()
        self.intercepted = NO_REQUESTS
        """Requests that the proxy answers. Each needs one Relay.answer(); the relay reads no further request
        before it.
        """
        self.broker_responses = NOTHING
        """The broker's responses to Relay.ask_broker(): header and body, without the length."""
        self.unknown_brokers = NO_BROKERS
        """Brokers in a response that the table of addresses lacks. The response waits: the shell adds them to
        the table and calls Relay.brokers_known().
        """
        self.unusual = False
        """Whether `intercepted`, `broker_responses` or `unknown_brokers` has entries. Nearly all calls output
        only bytes, and the shell tests one attribute instead of three.
        """
        self.names_wanted = False
        """Whether TopicNames.wanted has ids that the shell must request from the cluster."""
        self.client_muted = False
        """Whether the shell must not read the client. False while a large request arrives, whose rest is
        always read.
        """
        self.holds_memory = False
        """Whether bytes for the broker are in memory that connections share. When all of them have been sent,
        the shell calls Relay.broker_took_all().
        """
        self.broker_paused = False
        """Whether the shell must not read the broker: no response may be sent to the client yet, or the relay
        reads the responses that have arrived in a later turn of the event loop.
        """
        self.next_timer = 0.0
        """When Relay.handle_timer() is due; 0.0 for never."""

    @property
    def to_broker(self) -> list[bytes]:
        """The bytes for the broker, in pieces."""
        return self.for_broker.pieces

    @property
    def to_client(self) -> list[bytes]:
        """The bytes for the client, in pieces."""
        return self.for_client.pieces

    def clear(self) -> None:
        """Begin a call: clear the output of the last one."""
        self.for_broker.clear()
        self.for_client.clear()
        if self.unusual:
            self.unusual = False
            self.intercepted = NO_REQUESTS
            self.broker_responses = NOTHING
            self.unknown_brokers = NO_BROKERS

    def await_ports(self, brokers: list[BrokerAddress]) -> None:
        """Output the unknown brokers of a response."""
        self.unknown_brokers = brokers
        self.unusual = True

    def take_unknown_brokers(self) -> list[BrokerAddress]:
        """Take the unknown brokers, which the shell learns from here."""
        brokers = self.unknown_brokers
        self.unknown_brokers = NO_BROKERS
        return brokers

    def send_to_broker(self, pieces: list[bytes]) -> None:
        """Add bytes for the broker. The caller must not use the list again."""
        self.for_broker.add(pieces)

    def forward_to_broker(self, frame: Frame) -> None:
        """Add a frame for the broker, unchanged."""
        self.for_broker.add_frame(frame)

    def forget_to_broker(self) -> None:
        """Drop the references to the bytes for the broker, which have been sent."""
        self.for_broker.clear()

    def send_to_client(self, pieces: list[bytes]) -> None:
        """Add bytes for the client. The caller must not use the list again."""
        self.for_client.add(pieces)

    def forward_to_client(self, frame: Frame) -> None:
        """Add a frame for the client, unchanged."""
        self.for_client.add_frame(frame)

    def intercept(self, request: Intercepted) -> None:
        """Output a request that the proxy answers."""
        self.intercepted = [*self.intercepted, request]
        self.unusual = True

    def add_broker_response(self, payload: bytes) -> None:
        """Output a response of the broker to the proxy."""
        self.broker_responses = [*self.broker_responses, payload]
        self.unusual = True
