"""LocalResponses: the proxy's own responses to intercepted requests, which are not forwarded."""

from collections.abc import Callable
from typing import Final

from proxy.admin.authority import ClientRights
from proxy.admin.broker import Broker
from proxy.admin.dispatch import AdminApis
from proxy.admin.measured_work import MeasuredWork
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.server.connection.connection import Connection
from proxy.server.connection.handled_request import HandledRequest
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.errors import ProtocolError

ANSWER_FAILED: Final = "answer_failed"
"""The label `reason` of a connection that ended because the proxy failed to respond; the log has the error.
"""


class LocalResponses:
    """Responds to the intercepted requests of one listener's clients."""

    def __init__(
        self,
        *,
        admin: AdminApis,
        cluster: ClusterRefresh,
        counts: PartitionCounts,
        known_to_brokers: bool,
    ) -> None:
        """`known_to_brokers`: whether brokers see the client's own principal, not the proxy's."""
        self._admin: Final = admin
        self._cluster: Final = cluster
        self._counts: Final = counts
        self._known_to_brokers: Final = known_to_brokers

    async def respond(self, connection: Connection, request: Intercepted) -> None:
        """Give the connection its response, or end the connection.

        The client never waits for a response that does not come: an unforeseen error ends the connection too,
        and goes on to the log.
        """
        handled = connection.handled(request)
        work = MeasuredWork(self._admin.answer(request, self._broker(connection, handled)))
        try:
            try:
                reply = await work
            finally:
                handled.charge_work(work.seconds)
            if reply.forwards:
                handled.forward(reply.frame)
            else:
                handled.answer(reply.frame, reply.throttle, reply.delay_seconds)
            if reply.taken is not None:
                await _taken(handled, reply.taken)
        except ProtocolError as error:
            connection.session.fail(RelayError(CLIENT_PROTOCOL_ERROR, str(error)))
        except RelayError as error:
            connection.session.fail(error)
        except BaseException:
            connection.session.close(ANSWER_FAILED)
            raise

    def _broker(self, connection: Connection, handled: HandledRequest[Connection]) -> Broker:
        """The broker that the client sent the request to."""
        assert connection.node_id is not None, "chosen when the connection was opened"
        rights = ClientRights(
            self._admin.authority,
            handled.ask,
            handled.request.exchange.client,
            handled.request.header.correlation_id,
            known_to_broker=self._known_to_brokers,
            address_stated=connection.address_stated,
        )
        return Broker(
            self._cluster.view.cluster_id,
            connection.node_id,
            self._counts,
            handled.ask,
            rights,
            handled.gone,
            handled.earlier_done,
        )


async def _taken(handled: HandledRequest[Connection], taken: Callable[[], None]) -> None:
    """Call `taken` when the client's socket has taken the response."""
    try:
        await handled.taken()
    finally:
        taken()
