"""ReplicationGateway: a listener where brokers fetch from each other.

Brokers take their fellows' addresses from their registrations, so they advertise their inter-broker listeners
at its ports, and upstream.brokers says where these listeners are in truth. Nobody is rejected or made to wait
here, no address is changed, and nothing but Fetch is read.
"""

import logging
from collections.abc import Iterator
from typing import Final

from proxy.config.settings import split_address
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from proxy.server.listener.client_identification import NotServed
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.tls_server import TLS_HANDSHAKE_FAILED
from proxy.wire.addresses import Unchanged

log = logging.getLogger(__name__)
LOG_UNREAD_EVERY_SECONDS: Final = 60.0


class ReplicationGateway(Gateway):
    """Serves a listener of the settings that has `replication`; it knows the cluster by another gateway."""

    _unread_logged = 0
    _unread_logged_at = float("-inf")

    def start(self) -> None:
        """Serve at once: brokers in sync wait for each other."""
        for node_id, text in self.listener.upstream.brokers.items():
            self.ports.advertised(node_id, *split_address(text))
        self._listening = True
        self._tasks.start(self._sweep())

    def close(self) -> None:
        self._counts.close()

    def problems(self) -> list[str]:
        """A broker that cannot be reached by its fellows is a problem of the cluster, not of its clients."""
        return [f"{self.listener.name}: {why}" for why in self.ports.without_port.values()]

    def opened(self, connection: Connection, address: str) -> Relay | None:
        try:
            principal, _ = self._client_identification.receive(connection)
        except NotServed as error:
            self._reject(error.reason, connection.peer, str(error))
            return None
        self.connections.add(connection)
        assert connection.node_id is not None, "there is no bootstrap port"
        engine = self._engines.between_brokers(connection.node_id, self._loop.time())
        return Relay(
            engine,
            Unchanged(),
            self.traffic,
            principal,
            address,
            self._limits.max_frame_bytes,
            topic_names=self._topic_names,
            between_brokers=True,
            node_id=connection.node_id,
            login=self._client_identification.login,
        )

    def lags(self) -> Iterator[tuple[int, int]]:
        """By connection: which follower it is, and how many messages its replicas lack."""
        for connection in list(self.connections):
            follower = connection.follower
            if follower is not None:
                yield follower

    def admit(self, node_id: int | None, address: str, peer: str) -> float | None:
        return 0.0

    def failed(self, address: str, peer: str, why: str) -> None:
        if why:
            self._reject(TLS_HANDSHAKE_FAILED, peer, why)

    def ended(self, connection: Connection, reason: str) -> None:
        self.connections.discard(connection)
        self.leaving.add(connection)
        self._count_closed(reason)

    def close_idle(self, now: float) -> None:
        super().close_idle(now)
        unread = self.traffic.unread_fetches
        if unread > self._unread_logged and now - self._unread_logged_at >= LOG_UNREAD_EVERY_SECONDS:
            log.warning(
                "%s: %d fetches were of versions that this proxy cannot read; they pass without quotas",
                self.listener.name,
                unread - self._unread_logged,
            )
            self._unread_logged, self._unread_logged_at = unread, now
