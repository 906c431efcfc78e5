"""Drain: ends a connection when the proxy shuts down, as soon as no response is due."""

from typing import Final, Generic, TypeVar, final

from proxy.relay.close_reasons import DRAINED, RelayError
from proxy.relay.relay import Relay
from proxy.server.connection.hang_up import has_sent
from proxy.server.connection.pauses import BROKER_FULL, CONNECTING, DRAINING
from proxy.server.connection.relay_session import RelaySession

DRAIN_POLL_SECONDS: Final = 0.02
"""How often each connection is looked at during a shutdown."""
DRAIN_CALLS: Final = 25
"""Half a second, in which requests with acks=0 that are already in the sockets' buffers are read."""
QUIET_SECONDS: Final = 0.1
"""A client that has sent nothing for this long is not in the middle of sending."""
ACTIVE_SECONDS: Final = 1.0
"""A client from which or for which nothing has come for this long does not send its next request soon."""
REQUEST_CALLS: Final = 5
"""A tenth of a second, in which an active client sends its next request."""
SLOW_SECONDS: Final = 0.25
"""A response that is due for longer is slow: a shutdown serves other clients until it arrives."""
C = TypeVar("C")
"""The connection, as for RelaySession."""


@final
class DrainPolls:
    """How long one client is still served, and read from; called() counts the polls."""

    __slots__ = ("_blocked", "_calls", "_request_calls")

    def __init__(self) -> None:
        self._calls = 0
        self._blocked = False
        self._request_calls = 0

    def called(self, blocked: bool) -> None:
        """Count a poll, unless `blocked`: the broker accepts no bytes, so the client could not be read."""
        self._blocked = blocked
        self._calls += not blocked

    @property
    def read_enough(self) -> bool:
        """Whether a client that continues to send has been read for long enough."""
        return self._calls > DRAIN_CALLS

    def quiet(self, silent_seconds: float) -> bool:
        """Whether a client that has been silent for this long has no bytes in flight."""
        return not self._blocked and silent_seconds >= QUIET_SECONDS

    def awaits_request(self, silent_seconds: float) -> bool:
        """Count a poll at which the client has no outstanding request; whether to wait for its next one.

        `silent_seconds`: for how long nothing has come from the client or for it.
        """
        self._request_calls += 1
        return self._request_calls <= REQUEST_CALLS and silent_seconds < ACTIVE_SECONDS


@final
class Drain(Generic[C]):
    """The shutdown of one connection."""

    __slots__ = ("_polls", "_session")

    def __init__(self, session: RelaySession[C]) -> None:
        self._session: Final = session
        self._polls: Final = DrainPolls()

    def poll(self, now: float) -> None:
        """Close the connection when no response is due. Called every DRAIN_POLL_SECONDS.

        No further request is read, except from a client that sends with acks=0. This client is read from
        until it is silent, or for a maximum number of polls (see DrainPolls). Quotas apply.
        """
        session = self._session
        relay = session.relay
        if relay is None or session.over:
            return
        polls = self._polls
        polls.called(session.pauses.has(BROKER_FULL | CONNECTING))
        if polls.read_enough or not (relay.status.sends_unanswered or relay.status.request_unfinished):
            session.pause(DRAINING, True)
        try:
            output = relay.drain(now)
        except RelayError as error:
            session.fail_in_call(relay, error)
            return
        session.act_on(relay, output)
        done = session.pauses.has(DRAINING) or polls.quiet(now - session.heard_at)
        if (
            done
            and relay.status.awaited is None
            and not session.over
            and not self._request_is_near(relay, now)
        ):
            session.close(DRAINED)

    def _request_is_near(self, relay: Relay, now: float) -> bool:
        """Whether to keep the connection of an active client until it has sent its next request, which stays
        unread. librdkafka connects again at once only if a request is outstanding at the end of a connection;
        otherwise it takes up to two seconds.
        """
        client = self._session.client
        if client is None or relay.status.response_due or relay.status.sends_unanswered or has_sent(client):
            return False
        return self._polls.awaits_request(now - self._session.heard_at)
