"""Metrics: the store, the configuration, connections that wait; and no family grows without bound."""

from collections.abc import Iterator

import pytest
from prometheus_client.core import Metric

from proxy.quota.measure.bucket import BucketState
from proxy.quota.usage import REST
from proxy.telemetry.metrics.metrics import AT_A_TIME, ProxyCollector, StoreState
from proxy.telemetry.metrics.series import MAX_SERIES

TOKENS = "controller_mutation_tokens"


class Store:
    def __init__(self, problem: str, lag: int) -> None:
        self.problem = problem
        self.lag = lag


def collected(
    buckets: list[BucketState] | None = None, store: StoreState | None = None, rejected: bool = False
) -> dict[str, Metric]:
    def numbered() -> Iterator[tuple[int, BucketState]]:
        return ((1, state) for state in buckets or [])

    return {
        family.name: family
        for family in ProxyCollector(
            listeners=[], buckets=numbered, store=store, file_rejected=lambda: rejected
        ).collect()
    }


def value(families: dict[str, Metric], name: str) -> float:
    [sample] = families[f"quota_proxy_{name}"].samples
    found: float = sample.value
    return found


def test_waits_of_connections_are_by_address() -> None:
    states = [
        BucketState(
            quota="connection_creation_rate",
            limit=5,
            rate=1,
            throttled_until=0,
            throttled_requests=2,
            throttle_seconds=1.5,
            ip="10.0.0.1",
        ),
        BucketState(
            quota="connection_creation_rate",
            limit=5,
            rate=1,
            throttled_until=0,
            throttled_requests=2,
            throttle_seconds=0.5,
            ip="10.0.0.1",
        ),
        BucketState(
            quota="producer_byte_rate",
            user="alice",
            limit=5,
            rate=1,
            throttled_until=0,
            throttled_requests=2,
            throttle_seconds=9.0,
        ),
    ]
    families = collected(states)
    [sample] = [
        sample
        for sample in families["quota_proxy_connection_throttle_seconds"].samples
        if sample.name.endswith("_total")
    ]
    assert (sample.labels, sample.value) == ({"ip": "10.0.0.1"}, 2.0)
    users = [sample.labels["user"] for sample in families["quota_proxy_throttle_seconds"].samples]
    assert users == ["alice"]


def test_controller_mutations() -> None:
    rate = "controller_mutation_rate"
    states = [
        BucketState(
            quota=rate,
            user="alice",
            limit=5,
            rate=12.5,
            throttled_until=0,
            throttled_requests=2,
            throttle_seconds=1.5,
            tokens=-60.0,
        ),
        BucketState(
            quota=rate,
            client_id="etl",
            limit=5,
            rate=-0.5,
            throttled_until=0,
            throttled_requests=0,
            throttle_seconds=0.0,
            tokens=55.0,
        ),
        BucketState(
            quota="producer_byte_rate",
            user="bob",
            limit=5,
            rate=1,
            throttled_until=0,
            throttled_requests=2,
            throttle_seconds=9.0,
            tokens=3.0,
        ),
    ]
    families = collected(states)
    found = {
        (
            sample.name.removeprefix("quota_proxy_"),
            sample.labels["user"],
            sample.labels["client_id"],
        ): sample.value
        for name, family in families.items()
        if name.startswith("quota_proxy_controller_mutation")
        for sample in family.samples
    }
    seconds = "controller_mutation_throttle_seconds_total"
    assert found == {
        (rate, "alice", ""): 12.5,
        (rate, "", "etl"): 0.0,
        ("controller_mutation_tokens", "alice", ""): -60.0,
        ("controller_mutation_tokens", "", "etl"): 55.0,
        (seconds, "alice", ""): 1.5,
        (seconds, "", "etl"): 0.0,
    }
    limits = {sample.labels["quota"]: sample.value for sample in families["quota_proxy_quota_limit"].samples}
    assert limits == {rate: 5, "producer_byte_rate": 5}


def test_of_too_many_mutators_the_deepest_in_debt_are_shown() -> None:
    rate = "controller_mutation_rate"
    states = [
        BucketState(
            quota=rate,
            user=f"user-{number}",
            limit=5,
            rate=1.0,
            throttled_until=0,
            throttled_requests=0,
            throttle_seconds=1.0,
            tokens=float(number),
        )
        for number in range(MAX_SERIES + 2)
    ]
    families = collected(states)
    tokens = {sample.labels["user"]: sample.value for sample in families[f"quota_proxy_{TOKENS}"].samples}
    assert len(tokens) == MAX_SERIES
    assert min(tokens.values()) == 0.0
    assert REST not in tokens
    rates = {sample.labels["user"]: sample.value for sample in families[f"quota_proxy_{rate}"].samples}
    assert rates[REST] == 2.0
    left_out = {s.labels["family"]: s.value for s in families["quota_proxy_series_left_out"].samples}
    assert left_out[f"quota_proxy_{TOKENS}"] == left_out[f"quota_proxy_{rate}"] == 2


def test_the_store() -> None:
    families = collected(store=Store("", 0))
    assert (value(families, "quota_store_reachable"), value(families, "quota_store_lag")) == (1, 0)
    families = collected(store=Store("away", 7))
    assert (value(families, "quota_store_reachable"), value(families, "quota_store_lag")) == (0, 7)
    assert "quota_proxy_quota_store_reachable" not in collected()


@pytest.mark.parametrize("rejected", [True, False])
def test_the_file(rejected: bool) -> None:
    assert value(collected(rejected=rejected), "config_last_reload_successful") == (0 if rejected else 1)


def test_buckets_of_topics_have_no_limit_among_those_of_clients() -> None:
    states = [
        BucketState(
            quota="producer.byte.rate",
            limit=5,
            rate=1,
            throttled_until=0,
            throttled_requests=2,
            throttle_seconds=1.5,
            topic="orders",
            partition=0,
        ),
        BucketState(
            quota="producer.byte.rate",
            limit=9,
            rate=1,
            throttled_until=0,
            throttled_requests=1,
            throttle_seconds=0.5,
            topic="others",
            partition=1,
        ),
    ]
    families = collected(states)
    assert families["quota_proxy_quota_limit"].samples == []
    [sample] = [
        sample
        for sample in families["quota_proxy_throttle_seconds"].samples
        if sample.name.endswith("_total")
    ]
    assert (sample.labels["quota"], sample.value) == ("producer.byte.rate", 2.0)


def test_many_buckets_give_others_a_turn() -> None:
    states = [
        BucketState(
            quota="producer_byte_rate",
            user=f"u{n}",
            limit=5,
            rate=1,
            throttled_until=0,
            throttled_requests=n,
            throttle_seconds=1.5,
        )
        for n in range(5000)
    ]
    steps = ProxyCollector(
        listeners=[], buckets=lambda: enumerate(states), store=None, file_rejected=lambda: False
    ).steps()
    assert sum(step is None for step in steps) >= len(states) // AT_A_TIME
    families = collected(states)
    found = families["quota_proxy_throttled_requests"].samples
    assert sum(sample.value for sample in found) == sum(range(5000))
    left_out = {s.labels["family"]: s.value for s in families["quota_proxy_series_left_out"].samples}
    assert left_out["quota_proxy_throttled_requests"] == 4000
