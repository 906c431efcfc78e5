"""What /metrics shows while replicas are throttled."""

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from proxy.quota.kinds.replication.state import ReplicationState
from proxy.telemetry.metrics.families.replication import replication_families
from tests.support.simulations.move import MEBIBYTE

RATE = 4 * MEBIBYTE


class Families(Collector):
    def __init__(self, state: ReplicationState, now: float) -> None:
        lags = [(2, 5), (3, 0), (2, 7)]
        families = replication_families(state, lags, now)
        self._families = [family for family in families if family is not None]

    def collect(self) -> list[Metric]:
        return self._families


def test_metrics(move: tuple[ReplicationState, float]) -> None:
    registry = CollectorRegistry()
    registry.register(Families(*move))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"quota_proxy_{name}", labels)

    moved = value("leader_replication_throttled_bytes_total", broker="1")
    assert moved == value("follower_replication_throttled_bytes_total", broker="2")
    assert moved == pytest.approx(21 * RATE, rel=0.05)
    assert value("leader_replication_throttled_rate", broker="1") == pytest.approx(RATE, rel=0.1)
    assert value("follower_replication_throttled_rate", broker="2") == pytest.approx(RATE, rel=0.1)
    assert (value("replication_omitted_partitions_total", broker="1", role="leader") or 0) > 10
    assert value("replication_throttle_limit", broker="2", role="follower") == 2 * RATE
    assert value("replication_replicas_behind", broker="1", role="leader") == 4
    assert value("replication_throttle_too_low", broker="1", role="leader") == 0
    assert [value("replica_lag", broker=broker) for broker in "123"] == [None, 12, 0]


def test_no_family_without_a_replication_listener() -> None:
    assert list(replication_families(None, [], 0.0)) == []
