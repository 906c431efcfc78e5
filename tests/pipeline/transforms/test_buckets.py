"""The bucket of a tenant, by the proxy's order of precedence, and what it is charged."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame

from pipeline.inputs.quota_file import BROKER, CLUSTER, Exempt, Quotas, QuotaSet
from pipeline.transforms.buckets import charged, interval_rates, with_buckets
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds.client_bytes import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from tests.support.messages.usage_events import make_event

Frame = Callable[..., DataFrame]


def test_an_event_is_charged_to_the_byte_rate_of_its_api(frame: Frame) -> None:
    apis = ("Produce", "Fetch", "ShareFetch", "Metadata")
    found = charged(frame(*[make_event(api=api, bytes_in=7, bytes_out=9) for api in apis])).collect()
    assert sorted((row.api, row.bucket_quota, row.bytes) for row in found) == [
        ("Fetch", CONSUMER_BYTE_RATE, 9),
        ("Produce", PRODUCER_BYTE_RATE, 7),
        ("ShareFetch", CONSUMER_BYTE_RATE, 9),
    ]


def test_each_tenant_finds_its_bucket(frame: Frame) -> None:
    quotas = QuotaSet(
        Quotas(exempt=Exempt(users=["erin"], client_ids=["probe"])),
        {
            QuotaEntity("alice", "billing"): {PRODUCER_BYTE_RATE: 1.0},
            QuotaEntity("alice", None): {PRODUCER_BYTE_RATE: 2.0, CONSUMER_BYTE_RATE: 3.0},
            QuotaEntity(None, "billing"): {PRODUCER_BYTE_RATE: 4.0},
            QuotaEntity(DEFAULT, None): {CONSUMER_BYTE_RATE: 5.0},
        },
    )
    tenants = [("alice", "billing"), ("alice", "other"), ("bob", "billing"), ("carol", "c")]
    exempt = [("erin", "billing"), ("alice", "probe")]
    events = [
        make_event(user=user, client_id=client_id, api=api)
        for user, client_id in (*tenants, *exempt)
        for api in ("Produce", "Fetch")
    ]
    table = with_buckets(charged(frame(*events)), quotas)
    assert {"bucket_quota", "bucket_user", "bucket_client_id", "limit"} <= set(table.columns)
    assert {
        (row.user, row.client_id, row.bucket_quota): (row.bucket_user, row.bucket_client_id, row.limit)
        for row in table.collect()
    } == {
        ("alice", "billing", PRODUCER_BYTE_RATE): ("alice", "billing", 1.0),
        ("alice", "billing", CONSUMER_BYTE_RATE): ("alice", "", 3.0),
        ("alice", "other", PRODUCER_BYTE_RATE): ("alice", "", 2.0),
        ("alice", "other", CONSUMER_BYTE_RATE): ("alice", "", 3.0),
        ("bob", "billing", PRODUCER_BYTE_RATE): ("", "billing", 4.0),
        ("bob", "billing", CONSUMER_BYTE_RATE): ("bob", "", 5.0),
        ("carol", "c", CONSUMER_BYTE_RATE): ("carol", "", 5.0),
    }


def test_without_a_quota_no_tenant_has_a_bucket(frame: Frame) -> None:
    assert with_buckets(charged(frame(make_event())), QuotaSet(Quotas())).collect() == []


def rates(events: DataFrame, scope: str) -> list[tuple[str | None, float]]:
    found = interval_rates(charged(events), ("user",), scope).collect()
    return sorted((row.proxy, round(row.rate, 3)) for row in found)


def test_intervals_of_different_lengths_add_up_over_the_longest(frame: Frame) -> None:
    """In the second minute, the proxy with the short intervals has traffic in a third of them. In the third,
    it has an interval that lasted for a day.
    """
    short = {"proxy": "a", "interval_ms": 10_000, "bytes_in": 10_000}
    long = {"proxy": "b", "interval_ms": 60_000, "bytes_in": 120_000}
    events = [
        *[make_event(at=10_000 * place, **short) for place in (0, 1, 2, 3, 4, 5, 6, 9)],
        *[make_event(at=60_000 * place, **long) for place in range(3)],
        make_event(at=120_000, **{**short, "interval_ms": 86_400_000, "bytes_in": 86_400_000}),
    ]
    expected = [1000 + 2000, 1000 * 20 / 60 + 2000, 1000 + 2000]
    assert [rate for _, rate in rates(frame(*events), CLUSTER)] == pytest.approx(sorted(expected), abs=0.01)


def test_at_a_broker_a_proxy_is_a_host(frame: Frame) -> None:
    """Each run of a process has another name; two processes of a host are not added up."""
    proxies = ("east-00c0ffee", "east-0badcafe", "west-1-00c0ffee", "proxy-7")
    events = frame(*[make_event(proxy=proxy, bytes_in=10_000) for proxy in proxies])
    assert rates(events, BROKER) == [("east", 1000), ("east", 1000), ("proxy-7", 1000), ("west-1", 1000)]
