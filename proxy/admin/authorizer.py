"""AuthorizerWatch: asks, on the proxy's own connection, whether a cluster has an authorizer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from proxy.admin.authority import Authority
from proxy.errors import UpstreamUnavailable
from proxy.security.access import Asker
from proxy.upstream.broker_connection import BrokerConnection
from proxy.upstream.refresh import ClusterRefresh

log = logging.getLogger(__name__)
ASK_EVERY_SECONDS: Final = 300.0
"""An authorizer is added by restarting the brokers, so this rarely changes."""
RETRY_SECONDS: Final = 1.0
"""The pause after a broker could not be asked."""


class AuthorizerWatch:
    """Knows whether one cluster has an authorizer."""

    def __init__(self, name: str, cluster: ClusterRefresh, authority: Authority) -> None:
        """`name` is that of the listener, for messages."""
        self._name: Final = name
        self._cluster: Final = cluster
        self._authority: Final = authority
        self._missing = False

    @property
    def warning(self) -> str:
        """A warning if neither the cluster nor the configuration limits who may change quotas."""
        if not self._missing or self._authority.settings.without_authorizer is not None:
            return ""
        return (
            f"{self._name}: the cluster has no authorizer, so every client on the proxy's own host may "
            "change quotas; set quotas.changes.without_authorizer to choose who may"
        )

    async def run(self) -> None:
        """Ask a broker of the cluster, every ASK_EVERY_SECONDS, until cancelled."""
        while True:
            try:
                missing = await self._ask()
            except (OSError, EOFError, UpstreamUnavailable):
                # ClusterRefresh logs the reason.
                await asyncio.sleep(RETRY_SECONDS)
                continue
            newly = missing and not self._missing
            self._missing = missing
            if newly and self.warning:
                log.warning("%s", self.warning)
            await asyncio.sleep(ASK_EVERY_SECONDS)

    async def _ask(self) -> bool:
        """Return whether the cluster has no authorizer."""
        node = next(iter(self._cluster.view.nodes.values()), None)
        if node is None:
            raise UpstreamUnavailable("no broker is known")
        # In a thread, so that clients are served meanwhile.
        has_no_authorizer = await asyncio.to_thread(_imported)
        cluster_access = self._cluster.cluster_access
        async with asyncio.timeout(cluster_access.connect_seconds):
            broker = await BrokerConnection.open(node.host, node.port, cluster_access.access)
            try:
                return await has_no_authorizer(broker)
            finally:
                broker.close()


def _imported() -> Callable[[Asker], Awaitable[bool]]:
    from proxy.admin.probes import has_no_authorizer

    return has_no_authorizer
