"""QuotaClusterFeed: the quotas get each view, and the cluster is asked for no more than they need."""

from proxy.quota.cluster_view import ClusterView
from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.config_keys import BYTES_IN_THRESHOLD, TOTAL_BYTES_IN_THRESHOLD
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import DEFAULT_RESOURCE, Resources
from proxy.server.listener.brokers.quota_cluster_feed import QuotaClusterFeed
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.addresses import BrokerAddress

VIEW = ClusterView("c", {1: BrokerAddress(1, "b", 9)}, {})
TOPIC_LIMIT = Limits(
    {},
    resources=Resources(
        {"orders": {BYTES_IN_THRESHOLD.name: "50"}},
        {DEFAULT_RESOURCE: {TOTAL_BYTES_IN_THRESHOLD.name: "100"}},
    ),
)


class Cluster(ClusterRefresh):
    """Counts the requests for all names."""

    def __init__(self) -> None:
        super().__init__("test", ClusterAccess((("k", 9092),), 1.0), lambda view: None)
        self.all_names_requests = 0

    def want_all_names(self) -> None:
        self.all_names_requests += 1
        super().want_all_names()


class Kit:
    def __init__(self) -> None:
        self.engines = QuotaEngines(load_kinds(), Limits({}))
        self.engines.engine(1, 0.0)
        self.cluster = Cluster()
        self.feed = QuotaClusterFeed(engines=self.engines, cluster=self.cluster, time=lambda: 5.0)

    @property
    def requested(self) -> tuple[bool, int]:
        return self.cluster.want_partitions, self.cluster.all_names_requests


def test_without_a_quota_by_topic_the_cluster_is_asked_for_brokers_only() -> None:
    kit = Kit()
    kit.feed.cluster_seen(VIEW)
    assert kit.requested == (False, 0)


def test_a_quota_by_topic_needs_partitions_and_the_names_of_all_topics_once() -> None:
    kit = Kit()
    kit.engines.configure(TOPIC_LIMIT, 0.0)
    kit.feed.update_needs()
    kit.feed.cluster_seen(VIEW)
    assert kit.requested == (True, 1)
    kit.engines.configure(Limits({}), 0.0)
    kit.feed.update_needs()
    assert kit.requested == (False, 1)
    kit.engines.configure(TOPIC_LIMIT, 0.0)
    kit.feed.update_needs()
    assert kit.requested == (True, 2)
