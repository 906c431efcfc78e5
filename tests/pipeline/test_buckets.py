"""The bucket of a tenant, by the proxy's order of precedence, and what it is charged."""

from collections.abc import Callable

from pyspark.sql import DataFrame

from pipeline.quota_file import Exempt, Quotas, QuotaSet
from pipeline.transforms.buckets import charged, with_buckets
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
