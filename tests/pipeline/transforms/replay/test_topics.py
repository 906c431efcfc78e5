"""Replay of the byte rates of partitions and topics: those in force give what happened."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame

from pipeline.inputs.quota_file import Quotas, QuotaSet
from pipeline.transforms.replay.replay import replay, untried
from proxy.quota.identity import QuotaEntity
from tests.support.messages.usage_events import make_event
from tests.support.simulations.workload import Client, run

Frame = Callable[..., DataFrame]
MB = 1_000_000
PRODUCED = "producer.byte.rate"
CONSUMED = "consumer.byte.rate"
TOPIC_PRODUCED = "topic.producer.byte.rate"
TOPIC_CONSUMED = "topic.consumer.byte.rate"


def quotas(**topics: Mapping[str, object]) -> QuotaSet:
    configs = {name: {key: str(value) for key, value in of.items()} for name, of in topics.items()}
    return QuotaSet(Quotas(), topics=configs)


def happened(quota: str, *topics: str) -> list[dict[str, Any]]:
    """Events of a client throttled at 1 MB/s: its bytes by topic, and its requests."""
    limits = QuotaSet(Quotas(), {QuotaEntity("", None): {"producer_byte_rate": MB}}).limits()
    api, way = ("Produce", "bytes_in") if "producer" in quota else ("Fetch", "bytes_out")
    events: list[dict[str, Any]] = []
    for event in run([Client("a", 50_000)], limits, 120):
        same = {**event, "api": api, "bytes_in": 0, "bytes_out": 0}
        bound = quota if event["throttle_ms"] else None
        events.append({**same, "topic": None, "partition": None, "quota": bound})
        none = {"requests": 0, "throttled_requests": 0, "throttle_ms": 0, "quota": None}
        for topic in topics:
            size = event["bytes_in"] // len(topics)
            events.append({**same, **none, "topic": topic, "partition": 0, way: size})
    return events


def test_the_quotas_in_force_give_what_happened(frame: Frame) -> None:
    """Each quota in a cluster of its own."""
    names = (PRODUCED, CONSUMED, TOPIC_PRODUCED, TOPIC_CONSUMED)
    events = [{**event, "cluster": name} for name in names for event in happened(name, name)]
    found = {
        row.cluster: row for row in replay(frame(*events), quotas(**{n: {n: MB} for n in names})).collect()
    }
    assert len(found) == len(names)
    for name, row in found.items():
        assert row.quota == name
        assert row.before_throttle_ms > 60_000
        assert row.after_throttle_ms == pytest.approx(row.before_throttle_ms, rel=0.05)


@pytest.mark.parametrize("quota", [TOPIC_PRODUCED, TOPIC_CONSUMED])
def test_the_partitions_and_brokers_of_a_topic_share_its_rate(frame: Frame, quota: str) -> None:
    """Each of four brokers has a partition, a quarter of the limit, and a connection that always waits. The
    topics, each in a cluster of its own, differ in what is replayed.
    """
    counts = ("requests", "bytes_in", "bytes_out", "throttled_requests")
    partition = quota.removeprefix("topic.")
    tried: dict[str, dict[str, object]] = {
        "same": {quota: MB},
        "higher": {quota: 2 * MB},
        "each": {quota: 100 * MB, partition: MB // 2},
    }
    events = [
        {
            **event,
            "cluster": topic,
            "broker": broker,
            "partition": None if event["topic"] is None else broker,
            **{name: event[name] // 4 for name in counts},
        }
        for topic in (*tried, "lower")
        for event in happened(quota, topic)
        for broker in range(4)
    ]
    rows = replay(frame(*events), quotas(**tried, **{"<default>": {quota: MB // 2}})).collect()
    found = {row.cluster: row for row in rows if row.quota == quota}
    same = found["same"]
    assert same.before_throttle_ms > 60_000
    assert same.after_throttle_ms == pytest.approx(same.before_throttle_ms, rel=0.1)
    assert found["higher"].after_throttle_ms < 0.01 * same.before_throttle_ms
    assert found["lower"].after_late_ms == pytest.approx(120_000, rel=0.1)
    assert found["each"].after_throttle_ms < 0.01 * same.before_throttle_ms
    assert len(rows) == len(found) == 4


def test_a_partition_and_its_topic_are_replayed_each_by_itself(frame: Frame) -> None:
    events = [make_event(at=10_000 * step, bytes_in=20 * MB, requests=200) for step in range(12)]
    found = replay(frame(*events), quotas(orders={PRODUCED: MB, TOPIC_PRODUCED: 3 * MB // 2})).collect()
    assert sorted(row.quota for row in found) == [PRODUCED, TOPIC_PRODUCED]


def test_without_a_limit_nobody_waits(frame: Frame) -> None:
    (row,) = replay(frame(*happened(PRODUCED, "orders")), quotas(other={PRODUCED: MB})).collect()
    assert (row.before_throttle_ms > 0, row.after_throttle_ms) == (True, 0)


def test_a_request_waits_for_the_worst_of_its_partitions(frame: Frame) -> None:
    """Each topic gets half of 1 MB/s: one has that rate as its limit, the other half of it."""
    tried = quotas(orders={PRODUCED: MB // 2}, returns={PRODUCED: MB // 4})
    (row,) = replay(frame(*happened(PRODUCED, "orders", "returns")), tried).collect()
    assert row.after_late_ms == pytest.approx(120_000, rel=0.1)
    assert row.after_throttle_ms == pytest.approx(240_000, rel=0.1)


def test_clients_share_a_partition(frame: Frame) -> None:
    events = [
        make_event(client_id=name, at=10_000 * step, bytes_in=8 * MB, requests=100)
        for step in range(12)
        for name in ("a", "b")
    ]
    assert replay(frame(*events), quotas(**{"<default>": {PRODUCED: 2 * MB}})).collect() == []
    found = replay(frame(*events), quotas(**{"<default>": {PRODUCED: MB}})).collect()
    assert sorted(row.client_id for row in found) == ["a", "b"]
    assert all(row.after_throttle_ms > 10_000 for row in found)


def test_what_is_over_is_rejected_where_the_action_says_so(frame: Frame) -> None:
    events = [make_event(at=10_000 * step, bytes_in=20 * MB, requests=200) for step in range(12)]
    tried = quotas(orders={PRODUCED: MB, f"{PRODUCED}.action": "reject"})
    (row,) = replay(frame(*events), tried).collect()
    assert row.after_throttle_ms == 0
    assert row.after_rejected_bytes == pytest.approx(120 * MB, rel=0.1)


def test_partitions_omitted_from_fetches_are_unknown(frame: Frame) -> None:
    tried = quotas(orders={CONSUMED: MB, f"{CONSUMED}.action": "omit"})
    (row,) = replay(frame(*happened(CONSUMED, "orders")), tried).collect()
    assert row.before_throttle_ms > 0
    assert row.after_throttle_ms is None
    assert untried(tried) == ["consumer.byte.rate with action omit"]
    whole = quotas(orders={TOPIC_CONSUMED: MB, f"{TOPIC_CONSUMED}.action": "omit"})
    assert untried(whole) == ["topic.consumer.byte.rate with action omit"]
    (row,) = replay(frame(*happened(TOPIC_CONSUMED, "orders")), whole).collect()
    assert row.after_throttle_ms is None


def test_traffic_beyond_the_limits_of_an_interval_has_no_partition(frame: Frame) -> None:
    """The proxy counts it under the topic <rest>, to which no limit applies."""
    rest = [
        make_event(topic="<rest>", partition=None, at=10_000 * step, bytes_in=5 * MB) for step in range(12)
    ]
    tried = quotas(**{"<default>": {PRODUCED: MB}})
    assert replay(frame(*rest), tried).collect() == []
    (row,) = replay(frame(*rest, *happened(PRODUCED, "orders")), tried).collect()
    assert row.after_throttle_ms == pytest.approx(row.before_throttle_ms, rel=0.05)
