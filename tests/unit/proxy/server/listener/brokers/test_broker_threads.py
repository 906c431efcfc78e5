"""BrokerThreads: the quotas learn how many threads each broker has, while one of them limits request time."""

import logging

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.quota.cluster_view import ClusterView
from proxy.quota.engines import QuotaEngines
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limits import Limits
from proxy.server.listener.brokers.broker_threads import VALID_SECONDS, BrokerThreads
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.addresses import BrokerAddress

LIMITED = Limits({QuotaEntity(DEFAULT, None): {"request_percentage": 10.0}})


class Counts(PartitionCounts):
    """Brokers with 11 threads."""

    def __init__(self) -> None:
        super().__init__(lambda node_id: None, 1.0)
        self.asked: list[int] = []
        self.problem = ""

    async def threads(self, node_id: int) -> int:
        self.asked.append(node_id)
        if self.problem:
            raise UpstreamUnavailable(self.problem)
        return 11


class Kit:
    def __init__(self, limits: Limits = LIMITED) -> None:
        self.now = 0.0
        self.engines = QuotaEngines(load_kinds(), limits)
        for node_id in (1, 2):
            self.engines.engine(node_id, 0.0)
        self.counts = Counts()
        self.cluster = ClusterRefresh("test", ClusterAccess((("k", 9092),), 1.0), lambda view: None)
        nodes = {node_id: BrokerAddress(node_id, "b", 9) for node_id in (2, 1)}
        self.cluster.view = ClusterView("c", nodes, {})
        self.threads = BrokerThreads(
            listener="kafka",
            engines=self.engines,
            cluster=self.cluster,
            counts=self.counts,
            time=lambda: self.now,
            sleep=self._sleep,
        )
        self.sleeps = 0

    async def _sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.now += seconds
        if self.sleeps == 100:
            raise TimeoutError

    @property
    def known(self) -> list[int]:
        quotas = [quota for _, quota in self.engines.active() if quota.limits_time]
        return [quota.threads for quota in quotas]


async def test_each_broker_is_asked_for_its_threads() -> None:
    kit = Kit()
    await kit.threads.look()
    assert kit.counts.asked == [1, 2]
    assert kit.known.count(11) == 2


async def test_no_broker_is_asked_without_a_limit_of_request_time() -> None:
    kit = Kit(Limits({QuotaEntity(DEFAULT, None): {"producer_byte_rate": 10.0}}))
    await kit.threads.look()
    assert kit.counts.asked == []
    kit.engines.configure(LIMITED, 0.0)
    await kit.threads.look()
    assert kit.counts.asked == [1, 2]


async def test_a_broker_is_asked_again_later() -> None:
    kit = Kit()
    with pytest.raises(TimeoutError):
        await kit.threads.run()
    assert kit.counts.asked == [1, 2] * 2
    assert kit.now >= VALID_SECONDS


async def test_without_the_right_the_threads_are_unknown_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kit = Kit()
    await kit.threads.look()
    kit.counts.problem = "cluster_authorization_failed"
    for _ in range(2):
        kit.now += VALID_SECONDS
        with caplog.at_level(logging.INFO):
            await kit.threads.look()
    assert 11 not in kit.known
    lines = [record.getMessage() for record in caplog.records if "request_percentage" in record.getMessage()]
    assert [("broker 1" in line, "broker 2" in line) for line in lines] == [(True, False), (False, True)]
    assert all("cluster_authorization_failed" in line for line in lines)


async def test_a_quota_of_all_brokers_knows_no_threads() -> None:
    """Its clients may occupy the threads of each broker."""
    kit = Kit()
    await kit.threads.look()
    shared = [quota for node_id, quota in kit.engines.active() if quota.node_id < 0]
    assert all(quota.threads == 0 for quota in shared)
