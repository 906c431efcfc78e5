"""Metrics: the store, the configuration, connections that wait; and no family grows without bound."""

from collections.abc import Iterator

import pytest
from prometheus_client.core import Metric

from proxy.quota.measure.bucket_state import BucketState
from proxy.quota.usage import REST
from proxy.store.skipped_records import SkippedRecords
from proxy.telemetry.metrics import series
from proxy.telemetry.metrics.metrics import AT_A_TIME, ProxyCollector, StoreState
from proxy.telemetry.metrics.series import MAX_SERIES
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item
from tests.support.stories.buckets import bucket_state
from tests.support.stories.listeners import ID, OTHER_ID, FilledListener

TOKENS = "controller_mutation_tokens"


class Store:
    def __init__(self, problem: str, lag: int) -> None:
        self.problem = problem
        self.lag = lag
        self.skipped = SkippedRecords("quotas")


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


def test_rest_does_not_decrease_when_idle_buckets_are_dropped() -> None:
    states = [
        bucket_state("producer_byte_rate", user=f"user-{n}", throttle_seconds=5.0)
        for n in range(MAX_SERIES + 3)
    ]
    collector = ProxyCollector(
        listeners=[],
        buckets=lambda: [(1, state) for state in states],
        store=None,
        file_rejected=lambda: False,
    )
    rests = []
    for _ in range(2):
        [family] = [found for found in collector.collect() if found.name == "quota_proxy_throttle_seconds"]
        rests += [sample.value for sample in family.samples if sample.labels["client_id"] == REST]
        del states[-2:]
    assert rests == [15.0, 15.0]


def test_the_topic_that_keeps_quotas() -> None:
    families = collected(store=Store("", 0))
    assert (value(families, "quota_store_reachable"), value(families, "quota_store_lag")) == (1, 0)
    families = collected(store=Store("away", 7))
    assert (value(families, "quota_store_reachable"), value(families, "quota_store_lag")) == (0, 7)
    assert "quota_proxy_quota_store_reachable" not in collected()


def test_records_that_are_skipped() -> None:
    store = Store("", 0)
    for key in (b"a", b"b", b"b"):
        store.skipped.skip(key, 0, "unknown")
    store.skipped.supersede(b"a")
    families = collected(store=store)
    assert value(families, "quota_store_skipped_records") == 3
    assert value(families, "quota_store_broken_records") == 1


@pytest.mark.parametrize("rejected", [True, False])
def test_the_configuration_file(rejected: bool) -> None:
    assert value(collected(rejected=rejected), "config_last_reload_successful") == (0 if rejected else 1)


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
    steps = ProxyCollector(
        listeners=[], buckets=lambda: enumerate(states), store=None, file_rejected=lambda: False
    ).steps()
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
    collector = ProxyCollector(listeners=[], buckets=reading, store=None, file_rejected=lambda: False)
    for step in collector.steps():
        if step is None and len(read) == len(states):
            turns += 1
    walks = 4 if quota == "producer_byte_rate" else 8  # its families, and the freeing
    assert turns >= walks * (len(states) - MAX_SERIES) // series.AT_A_TIME


def test_the_clients_with_the_fewest_tokens_are_shown() -> None:
    states = [
        bucket_state("controller_mutation_rate", user=f"u{n}", tokens=float(n * 7919 % 3000))
        for n in range(3000)
    ]
    samples = collected(states)[f"quota_proxy_{TOKENS}"].samples
    assert [sample.value for sample in samples] == [float(n) for n in range(MAX_SERIES)]


def samples_of(*listeners: FilledListener) -> dict[tuple[str, ...], float]:
    """By name and label values, without those of no interest here."""
    collector = ProxyCollector(listeners=listeners, buckets=tuple, store=None, file_rejected=lambda: False)
    return {
        (sample.name.removeprefix("quota_proxy_"), *sample.labels.values()): sample.value
        for family in collector.collect()
        for sample in family.samples
    }


def test_clients_are_added_up_over_listeners_without_brokers() -> None:
    listeners = [FilledListener(), FilledListener("second"), FilledListener("brokers", between_brokers=True)]
    for listener in listeners:
        listener.traffic.client("alice", "app").bytes_in = 7
    found = samples_of(*listeners)
    assert found["client_bytes_total", "in", "alice", "app"] == 14


def test_partitions_that_requests_name_by_id_have_the_topic_s_name_or_the_id() -> None:
    listener = FilledListener()
    items = [Item("named", NO_ID, 0, 1), Item("", ID, 1, 2), Item("", OTHER_ID, 2, 4)]
    listener.traffic.count_in(items)
    found = samples_of(listener)
    by_topic = {
        key[2:]: value for key, value in found.items() if key[:2] == ("topic_partition_bytes_total", "in")
    }
    assert by_topic == {("named", "0"): 1, ("by-id", "1"): 2, (OTHER_ID.hex(), "2"): 4}
    assert listener.topic_names.wanted == {ID, OTHER_ID}
