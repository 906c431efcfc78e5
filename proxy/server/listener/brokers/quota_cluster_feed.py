"""QuotaClusterFeed: gives the quotas what one cluster's metadata says."""

from collections.abc import Callable
from typing import Final

from proxy.quota.cluster_view import ClusterView
from proxy.quota.engines import QuotaEngines
from proxy.upstream.refresh import ClusterRefresh


class QuotaClusterFeed:
    """Passes each view to the quotas, and requests from the cluster as much as the quotas need."""

    def __init__(self, *, engines: QuotaEngines, cluster: ClusterRefresh, time: Callable[[], float]) -> None:
        """`time` is the clock of the quotas."""
        self._engines: Final = engines
        self._cluster: Final = cluster
        self._time: Final = time
        self._items_needed = False

    def cluster_seen(self, view: ClusterView) -> None:
        """Pass a view to the quotas."""
        self._engines.see_cluster(view, self._time())
        self.update_needs()

    def update_needs(self) -> None:
        """Request what the quotas need from now on; called when limits change.

        Once a quota counts by topic, all topics' names are requested: a request with unknown topic ids waits
        for them.
        """
        self._cluster.want_partitions = self._engines.wants_partitions
        items_needed = self._engines.wants_items
        if items_needed and not self._items_needed:
            self._cluster.want_all_names()
        self._items_needed = items_needed
