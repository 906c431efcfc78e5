"""ListenerConnections: the connections of one listener, from accept to close."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from proxy.quota.verdict import Verdict
from proxy.relay.close_reasons import CONNECTION_RATE, TOO_MANY_CONNECTIONS, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from proxy.server.listener.accept.acceptor import Room
from proxy.server.listener.accept.admission import Admission
from proxy.server.listener.accept.tls_opener import TLS_HANDSHAKE_FAILED
from proxy.server.listener.brokers.bootstrap_router import BootstrapRouter
from proxy.server.listener.brokers.dialer import BrokerDialer
from proxy.server.listener.client_identification import ClientIdentification, NotServed
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.server.listener.local_responses import LocalResponses
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.relays import Relays
from proxy.tasks import Tasks
from proxy.upstream.topic_names import ClusterTopicNames
from proxy.wire.addresses import BrokerAddress

MAX_UNSERVED: Final = 1000
"""Clients over the connection rate that are kept waiting for the end of their connection, as brokers do, so
that they do not connect again at once. Those beyond are closed at once: a storm must not use up memory and
file descriptors.
"""
OVER_CONNECTION_RATE: Final = (
    "its address is over its connection_creation_rate, and no connection can be served within 10 s"
)


class ListenerConnections:
    """The connections of a listener. Fulfils ConnectionHost, Entry and, for ports with TLS, TlsAdmission."""

    def __init__(
        self,
        *,
        admission: Admission,
        identification: ClientIdentification,
        router: BootstrapRouter,
        relays: Relays,
        ports: BrokerPorts,
        topic_names: ClusterTopicNames,
        dialer: BrokerDialer,
        local_responses: LocalResponses | None,
        closed: ClosedConnections,
        tasks: Tasks,
        time: Callable[[], float],
    ) -> None:
        """`local_responses` is None if `relays` intercepts no API; `time` is the clock of the quotas."""
        self.open: Final[set[Connection]] = set()
        self.closing: Final[set[Connection]] = set()
        """Connections that have ended, while their sockets still have data to send."""
        self._unserved = 0
        """How many clients over the connection rate wait for the end of their connection."""
        self._admission: Final = admission
        self._identification: Final = identification
        self._router: Final = router
        self._relays: Final = relays
        self._ports: Final = ports
        self._topic_names: Final = topic_names
        self._dialer: Final = dialer
        self._local_responses: Final = local_responses
        self._closed: Final = closed
        self._tasks: Final = tasks
        self._time: Final = time

    # Entry

    @property
    def room(self) -> Room:
        """How many connections there is room for."""
        return self._admission

    def enter(self, address: str, peer: str) -> bool:
        """Count a connection that has been accepted; False closes it."""
        limit = self._admission.enter(address)
        if limit:
            self._closed.reject(TOO_MANY_CONNECTIONS, peer, limit)
        return not limit

    def abandoned(self, address: str) -> None:
        """Stop counting a connection that ended before it was opened."""
        self._admission.leave(address)

    def accepts_later(self) -> None:
        """Log that there is no room for more connections."""
        self._closed.accepts_later()

    def accept_failed(self, error: OSError) -> None:
        self._closed.accept_failed(error)

    # TlsAdmission

    def admit(self, node_id: int | None, address: str, peer: str) -> Verdict | None:
        # Which broker a bootstrap connection gets is decided after the handshake: until then it counts for
        # any.
        node_id = self._router.next() if node_id is None else node_id
        verdict = self._relays.connect(node_id, address, self._time())
        if not self._may_wait(verdict, peer):
            self._admission.leave(address)
            return None
        return verdict

    def throttle_ended(self, address: str) -> None:
        self._unserved -= 1
        self._admission.leave(address)
        self._closed.count(CONNECTION_RATE)

    def handshake_failed(self, address: str, peer: str, why: str) -> None:
        self._admission.leave(address)
        if why:
            self._closed.reject(TLS_HANDSHAKE_FAILED, peer, why)

    # ConnectionHost

    def opened(self, connection: Connection, address: str) -> Relay | None:
        try:
            principal, node_id = self._identification.identify(connection)
        except NotServed as error:
            self._admission.leave(address)
            self._closed.reject(error.reason, connection.peer, str(error))
            return None
        if node_id is None:
            node_id = self._router.next()
        else:
            connection.session.keep_broker()
        connection.node_id = node_id
        connection.principal = principal
        now = self._time()
        if not connection.admitted:
            verdict = self._relays.connect(node_id, address, now)
            if not self._may_wait(verdict, connection.peer):
                self._admission.leave(address)
                return None
            if verdict.closes:
                connection.close_at(now + verdict.throttle_seconds)
            elif verdict.throttle_seconds > 0.0:
                connection.serve_at(now + verdict.throttle_seconds, verdict.bucket)
        self.open.add(connection)
        return self._relays.relay(node_id, principal, address, now)

    def _may_wait(self, verdict: Verdict, peer: str) -> bool:
        """Log a connection that is not served; return whether it may stay open for the verdict's wait."""
        if not verdict.closes:
            return True
        self._closed.log_rejected(CONNECTION_RATE, peer, OVER_CONNECTION_RATE)
        if self._unserved >= MAX_UNSERVED:
            self._closed.count(CONNECTION_RATE)
            return False
        self._unserved += 1
        return True

    def reroute(self, connection: Connection) -> Relay | None:
        node_id = self._router.other()
        if node_id is None:
            return None
        connection.node_id = node_id
        return self._relays.relay(node_id, connection.principal, connection.address, self._time())

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        await self._dialer.dial(connection.node_id, broker)

    def learn_broker(self, broker: BrokerAddress) -> None:
        self._ports.advertised(broker.node_id, broker.host, broker.port)

    def ask_names(self) -> None:
        self._topic_names.ask()

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        self._tasks.start(connection.reach_broker(broker))

    def start_answering(self, connection: Connection, request: Intercepted) -> None:
        assert self._local_responses is not None, "some API is intercepted"
        self._tasks.start(self._local_responses.respond(connection, request))

    def failed(self, connection: Connection, error: RelayError) -> None:
        relay = connection.session.relay
        user, client_id = (connection.principal, "") if relay is None else relay.status.sender
        self._closed.failed(connection.peer, connection.node_id, error, user=user, client_id=client_id)

    def ended(self, connection: Connection, reason: str) -> None:
        self.open.discard(connection)
        self.closing.add(connection)
        if connection.closes_unserved:
            self._unserved -= 1
        elif connection.unserved and connection.node_id is not None:
            self._relays.give_back(connection.node_id, connection.address, self._time())
        self._closed.count(reason)

    def left(self, connection: Connection) -> None:
        if connection in self.closing:
            self.closing.remove(connection)
            # Its descriptors count against limits.max_connections until they are closed.
            self._admission.leave(connection.address)

    # For the process

    def pauses(self) -> Iterator[str]:
        """For each open connection: why it is not read from, of PAUSE_REASONS; empty if it is."""
        for connection in list(self.open):
            yield connection.pause_reason

    def follower_lags(self) -> Iterator[tuple[int, int]]:
        """For each connection of a follower: its node id, and how many messages its replicas lack."""
        for connection in list(self.open):
            follower = connection.follower
            if follower is not None:
                yield follower

    def slow(self, now: float, since: float) -> bool:
        """Whether a response is due that a shutdown, begun at `since`, would have to await for long."""
        return any(connection.slow(now, since) for connection in self.open)

    def drain(self, now: float) -> None:
        """Close what is idle; called every DRAIN_POLL_SECONDS until no connection is left."""
        for connection in (*self.open, *self.closing):
            connection.drain(now)

    def abort(self) -> None:
        """Close every connection at once."""
        for connection in (*self.open, *self.closing):
            connection.abort()
