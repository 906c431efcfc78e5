"""RelayStatus: what a relay says about its connection."""

from typing import Final, final

from proxy.quota.identity import ClientKey, client_key
from proxy.relay.exchange import Exchange
from proxy.relay.inflight import WAITING_APIS, InFlight
from proxy.relay.requests.requests import Requests


@final
class RelayStatus:
    """The status of one relay, as of its last call. Nothing here changes it."""

    def __init__(self, requests: Requests, in_flight: InFlight) -> None:
        self._requests: Final = requests
        self._in_flight: Final = in_flight

    @property
    def response_due(self) -> bool:
        """Whether the response to a request has not arrived, or not completely."""
        return not self._in_flight.empty or self._requests.admission.waiting

    @property
    def waits_for_debt(self) -> bool:
        """Whether requests wait that are dropped if their client closes the connection: they wait for a debt
        to be paid, or have not been read because of the debt of rejected bytes. The client treats them
        as failed. The relay does not read the client meanwhile, so the shell must check whether the client
        has closed the connection before it calls handle_timer().
        """
        return self._requests.admission.waits_for_debt

    @property
    def waits_for_turn(self) -> bool:
        """Whether a list waits while others of the client are in flight (ListTurns). It is dropped if the
        client closes the connection.
        """
        return self._requests.waits_for_turn

    @property
    def throttled(self) -> bool:
        """Whether quotas make the client wait: the relay reads no further request meanwhile."""
        return self._in_flight.muted_until > 0.0 or self._requests.admission.waits_for_quotas

    @property
    def idle(self) -> bool:
        """Whether no response is outstanding, and no part of a request has arrived."""
        return (
            self._in_flight.empty and not self._requests.unfinished and not self._requests.admission.waiting
        )

    @property
    def request_unfinished(self) -> bool:
        """Whether bytes of a request have arrived that have not been forwarded."""
        return self._requests.unfinished

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower at the client's end, and the number of messages that its replicas lack;
        None for other clients.
        """
        return self._requests.follower

    @property
    def sender(self) -> tuple[str, str]:
        """The client's principal, and the client id of its last request."""
        client = self._requests.sender.client
        return client.principal, client.client_id

    @property
    def client_key(self) -> ClientKey:
        """The client that shares what all clients use."""
        return client_key(self._requests.sender.client)

    @property
    def first_request_seen(self) -> bool:
        """Whether the client has sent a whole request."""
        return self._requests.first_request_seen

    @property
    def awaited(self) -> Exchange | None:
        """The oldest request whose response a shutdown must await; None if there is none.

        It does not await requests that wait for events, such as Fetch: their clients send them again and lose
        nothing.
        """
        return self._in_flight.first_but(WAITING_APIS)

    @property
    def sends_unanswered(self) -> bool:
        """Whether the client's last Produce request had acks=0. Such a client cannot know which requests to
        send again.
        """
        return self._requests.sends_unanswered

    @property
    def answers_alone(self) -> bool:
        """Whether the only outstanding response is the proxy's own, to an intercepted request."""
        first = self._in_flight.first
        return first is not None and first.local and first.next is None
