"""Sweep: closes the idle and abandoned connections of a listener every second, and retries ports."""

import asyncio
from typing import Final

from proxy.config.settings import ConnectionLimits
from proxy.relay.close_reasons import CLIENT_CLOSED, HANDSHAKE_TIMEOUT, IDLE
from proxy.server.listener.brokers.rejected_addresses import RejectedAddresses
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.server.listener.connections import ListenerConnections
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.traffic_watch import TrafficWatch
from proxy.tasks import every

SWEEP_SECONDS: Final = 1.0
"""Timeouts are whole seconds; a timer per connection would cost more than they are late by."""
ENDED_SECONDS: Final = 5.0
"""How long a client that sends no more may wait for its responses. Kafka drops them at once. One hung broker
would otherwise keep the descriptors of all clients that have given up.
"""


class Sweep:
    """The periodic work of one listener."""

    def __init__(
        self,
        *,
        connections: ListenerConnections,
        ports: BrokerPorts,
        watch: TrafficWatch,
        closed: ClosedConnections,
        rejected: RejectedAddresses,
        limits: ConnectionLimits,
    ) -> None:
        self._connections: Final = connections
        self._ports: Final = ports
        self._watch: Final = watch
        self._closed: Final = closed
        self._rejected: Final = rejected
        self._limits: Final = limits

    async def run(self) -> None:
        """Sweep until cancelled."""
        time = asyncio.get_running_loop().time
        await every(SWEEP_SECONDS, lambda: self.sweep(time()))

    def sweep(self, now: float) -> None:
        self._ports.retry()
        self._watch.check(now)
        self._close_idle(now)
        self._closed.flush_log()
        self._rejected.flush_log()

    def _close_idle(self, now: float) -> None:
        ended_seconds = min(ENDED_SECONDS, self._limits.idle_seconds)
        for connection in list(self._connections.open):
            session = connection.session
            ended_at = session.client_ended_at
            if ended_at > 0.0 and now - ended_at > ended_seconds:
                session.give_up(CLIENT_CLOSED, "the client closed")
                continue
            waited = now - connection.opened_at
            if not connection.first_request_seen and waited > self._limits.handshake_seconds:
                session.give_up(HANDSHAKE_TIMEOUT, "limits.handshake_seconds have passed")
            elif now - session.heard_at > self._limits.idle_seconds and not connection.waits_for_broker:
                session.give_up(IDLE, "no byte was sent or received for limits.idle_seconds")
