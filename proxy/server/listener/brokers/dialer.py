"""BrokerDialer: connects clients' connections to their brokers."""

import asyncio
from typing import Final

from proxy.errors import UpstreamUnavailable
from proxy.security.access import Access
from proxy.server.listener.brokers.bootstrap_router import BootstrapRouter
from proxy.upstream.addresses import join_address
from proxy.upstream.refresh import ClusterRefresh

CONNECTED: Final = "connected"
FAILED: Final = "failed"


class BrokerDialer:
    """Opens one broker connection for each client connection of a listener."""

    def __init__(
        self, *, router: BootstrapRouter, cluster: ClusterRefresh, access: Access, connect_seconds: float
    ) -> None:
        self._router: Final = router
        self._cluster: Final = cluster
        self._access: Final = access
        self._connect_seconds: Final = connect_seconds
        self.connects: Final[dict[tuple[int, str], int]] = {}
        """Attempts to connect, by node id and outcome: CONNECTED or FAILED."""

    async def dial(self, node_id: int | None, protocol: asyncio.Protocol) -> None:
        """Connect `protocol` to the broker. Raises UpstreamUnavailable.

        A broker that cannot be reached may have moved, so a failure also requests fresh metadata.
        """
        address = None if node_id is None else self._router.address(node_id)
        if node_id is None or address is None:
            if node_id is not None:
                self._count(node_id, FAILED)
            raise UpstreamUnavailable(f"broker {node_id} is no longer known")
        host, port = address
        try:
            async with asyncio.timeout(self._connect_seconds):
                await self._access.connect(lambda: protocol, host, port)
        except OSError as error:
            self._count(node_id, FAILED)
            self._cluster.request_refresh()
            self._router.mark_unreachable(node_id)
            at = join_address(host, port)
            why = str(error) or f"no connection within {self._connect_seconds:g} s"
            raise UpstreamUnavailable(f"broker {node_id} at {at} is unreachable: {why}") from error
        self._count(node_id, CONNECTED)

    def _count(self, node_id: int, outcome: str) -> None:
        key = (node_id, outcome)
        self.connects[key] = self.connects.get(key, 0) + 1
