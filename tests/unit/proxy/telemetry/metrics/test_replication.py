"""What /metrics and /api/quotas show while replicas are throttled."""

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from proxy.quota.kinds.replication.state import ReplicationState
from proxy.telemetry.metrics.replication import endless, replication_families, shown
from tests.support.stories.move import MEBIBYTE, START, Fetcher, copies, quotas, run, throttled

RATE = 4 * MEBIBYTE


@pytest.fixture(scope="module")
def move() -> tuple[ReplicationState, float]:
    """Half way through, and the time."""
    quota = quotas(throttled(RATE, 2 * RATE), [1])[1]
    fetcher = Fetcher(quota, 2, copies(2, 4, 50_000_000))
    run([fetcher], 20)
    return quota.shared, fetcher.wakes_at


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


def test_rows_of_api_quotas(move: tuple[ReplicationState, float]) -> None:
    state, now = move
    leader, follower = sorted(shown(state, now), key=lambda row: str(row["kind"]), reverse=True)
    assert leader["kind"] == "leader.replication.throttled.rate"
    assert (leader["broker"], follower["broker"]) == (1, 2)
    assert leader["limit"] == RATE
    assert leader["replicas_behind"] == 4
    assert leader["since_seconds"] == pytest.approx(now - START, abs=0.1)
    assert leader["too_low"] is False
    assert leader["mode"] == "enforce"


def test_a_throttle_that_is_too_low() -> None:
    quota = quotas(throttled(RATE), [1])[1]
    fetcher = Fetcher(quota, 2, copies(2, 1, 50_000_000))
    for second in range(30):
        fetcher.copies[0].size += 2 * RATE
        run([fetcher], second + 1)
    assert endless(quota.shared, START + 1) == {}
    ((side, sentence),) = endless(quota.shared, fetcher.wakes_at).items()
    assert side == ("leader", 1)
    assert all(part in sentence for part in ("broker 1 ", str(RATE), "leader.replication.throttled.rate"))
    assert shown(quota.shared, fetcher.wakes_at)[0]["too_low"] is True
