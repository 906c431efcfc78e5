"""Limits and throttling of client quotas."""

from collections.abc import Iterator

import pytest
from prometheus_client.core import Metric

from proxy.quota.measure.bucket_state import BucketState
from proxy.quota.usage import REST
from proxy.telemetry.metrics import series
from proxy.telemetry.metrics.families.quotas import AT_A_TIME, quota_steps
from proxy.telemetry.metrics.large_families import LargeFamilies
from proxy.telemetry.metrics.series import MAX_SERIES
from tests.support.quotas.buckets import bucket_state

TOKENS = "controller_mutation_tokens"


def collected(buckets: list[BucketState]) -> dict[str, Metric]:
    large = LargeFamilies()
    steps = [*quota_steps([(1, state) for state in buckets], large), large.excluded()]
    return {family.name: family for family in steps if family is not None}


def test_throttle_times_of_connections_are_by_address() -> None:
    states = [
        bucket_state("connection_creation_rate", throttled_requests=2, throttle_seconds=1.5, ip="10.0.0.1"),
        bucket_state("connection_creation_rate", throttled_requests=2, throttle_seconds=0.5, ip="10.0.0.1"),
        bucket_state("producer_byte_rate", user="alice", throttled_requests=2, throttle_seconds=9.0),
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
        bucket_state(rate, user="alice", rate=12.5, throttled_requests=2, throttle_seconds=1.5, tokens=-60.0),
        bucket_state(rate, client_id="etl", rate=-0.5, tokens=55.0),
        bucket_state(
            "producer_byte_rate", user="bob", throttled_requests=2, throttle_seconds=9.0, tokens=3.0
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


def test_of_too_many_clients_those_with_the_fewest_tokens_are_shown() -> None:
    rate = "controller_mutation_rate"
    states = [
        bucket_state(rate, user=f"user-{number}", throttle_seconds=1.0, tokens=float(number))
        for number in range(MAX_SERIES + 2)
    ]
    families = collected(states)
    tokens = {sample.labels["user"]: sample.value for sample in families[f"quota_proxy_{TOKENS}"].samples}
    assert len(tokens) == MAX_SERIES
    assert min(tokens.values()) == 0.0
    assert REST not in tokens
    rates = {sample.labels["user"]: sample.value for sample in families[f"quota_proxy_{rate}"].samples}
    assert rates[REST] == 2.0
    excluded = {s.labels["family"]: s.value for s in families["quota_proxy_series_left_out"].samples}
    assert excluded[f"quota_proxy_{TOKENS}"] == excluded[f"quota_proxy_{rate}"] == 2


def test_the_clients_with_the_fewest_tokens_are_shown() -> None:
    states = [
        bucket_state("controller_mutation_rate", user=f"u{n}", tokens=float(n * 7919 % 3000))
        for n in range(3000)
    ]
    samples = collected(states)[f"quota_proxy_{TOKENS}"].samples
    assert [sample.value for sample in samples] == [float(n) for n in range(MAX_SERIES)]


def test_limits_of_topics_are_not_among_those_of_clients() -> None:
    states = [
        bucket_state(
            "producer.byte.rate", throttled_requests=2, throttle_seconds=1.5, topic="orders", partition=0
        ),
        bucket_state(
            "producer.byte.rate",
            limit=9,
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


def test_other_work_runs_between_many_buckets() -> None:
    states = [
        bucket_state("producer_byte_rate", user=f"u{n}", throttled_requests=n, throttle_seconds=1.5)
        for n in range(5000)
    ]
    steps = quota_steps(enumerate(states), LargeFamilies())
    assert sum(step is None for step in steps) >= len(states) // AT_A_TIME
    families = collected(states)
    found = families["quota_proxy_throttled_requests"].samples
    assert sum(sample.value for sample in found) == sum(range(5000))
    excluded = {s.labels["family"]: s.value for s in families["quota_proxy_series_left_out"].samples}
    assert excluded["quota_proxy_throttled_requests"] == 4000


@pytest.mark.parametrize("quota", ["producer_byte_rate", "controller_mutation_rate"])
def test_no_step_of_a_scrape_walks_all_buckets(quota: str) -> None:
    """Whatever is done with each bucket after its state has been read is done in steps, freeing included."""
    states = [
        bucket_state(quota, user=f"u{n}", throttle_seconds=float(n), tokens=-float(n)) for n in range(5000)
    ]
    read: list[int] = []

    def reading() -> Iterator[tuple[int, BucketState]]:
        for number, state in enumerate(states):
            read.append(number)
            yield 1, state

    turns = 0
    for step in quota_steps(reading(), LargeFamilies()):
        if step is None and len(read) == len(states):
            turns += 1
    walks = 4 if quota == "producer_byte_rate" else 8  # its families, and the freeing
    assert turns >= walks * (len(states) - MAX_SERIES) // series.AT_A_TIME
