"""Records of the proxy's topic as entries of an audit trail."""

import json
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.cli.quotas.cluster import audit_log
from proxy.cli.quotas.cluster.audit_log import AuditEntry, TopicMissing, parse, read_log
from proxy.errors import UpstreamUnavailable
from proxy.quota.identity import QuotaEntity
from proxy.store.quota_records import Place, Setting, encode
from proxy.upstream.cluster_access import ClusterAccess
from proxy.wire.api_keys import FETCH, LIST_OFFSETS
from tests.support.process.log_broker import END, LogBroker
from tests.support.process.metadata_broker import MetadataBroker

KEY = {"kind": "client-quota", "entity": {"client-id": None, "user": "alice"}, "name": "producer_byte_rate"}
VALUE = {
    "v": 1,
    "value": 1048576.0,
    "by": "admin",
    "client_id": "adminclient-1",
    "from": "10.0.0.7",
    "at_ms": 1_796_040_000_000,
}
ENTRY = AuditEntry(
    at_ms=1_796_040_000_000,
    by="admin",
    client_id="adminclient-1",
    address="10.0.0.7",
    kind="client-quota",
    entity=(("user", "alice"), ("client-id", None)),
    name="producer_byte_rate",
    value=1048576.0,
    overrides_file=False,
    temporary=False,
    expires_at_ms=None,
)


def record(key: object, value: object) -> AuditEntry | None:
    return parse(json.dumps(key).encode(), None if value is None else json.dumps(value).encode(), 5)


def test_a_quota_that_was_set() -> None:
    assert record(KEY, VALUE) == ENTRY


def test_the_default_may_be_spelt() -> None:
    key = {**KEY, "entity": {"user": "alice", "client-id": "<default>"}}
    assert record(key, VALUE) == ENTRY


def test_a_temporary_quota() -> None:
    entry = record({**KEY, "temporary": True}, {**VALUE, "expires_at_ms": 1_796_040_000_001})
    assert entry is not None
    assert (entry.temporary, entry.expires_at_ms) == (True, 1_796_040_000_001)


@pytest.mark.parametrize("overrides", [True, False])
def test_a_removal_of_the_store_says_whether_it_overrides_the_file(overrides: bool) -> None:
    setting = Setting(value=None, removed=overrides, by="admin", client_id="c", origin="10.0.0.7", at_ms=1)
    entry = parse(*encode(Place(QuotaEntity("alice", None), "producer_byte_rate"), setting), 5)
    assert entry is not None
    assert (entry.value, entry.overrides_file) == (None, overrides)


def test_removals_by_value_and_by_tombstone() -> None:
    by_value = record(KEY, {**VALUE, "value": None})
    assert by_value is not None
    assert (by_value.value, by_value.by) == (None, "admin")
    tombstone = record(KEY, None)
    assert tombstone is not None
    assert (tombstone.value, tombstone.by, tombstone.at_ms) == (None, "", 5)


def test_configs_of_topics_and_brokers() -> None:
    key = {"kind": "config", "entity": {"topic": None}, "name": "producer.byte.rate"}
    entry = record(key, {**VALUE, "value": "5"})
    assert entry is not None
    assert (entry.entity, entry.name, entry.value) == ((("topic", None),), "producer.byte.rate", "5")


def test_other_kinds_are_shown_by_their_key() -> None:
    entry = record({"kind": "topic-config", "topic": "orders", "name": "x"}, VALUE)
    assert entry is not None
    assert (entry.kind, entry.entity, entry.name) == (
        "topic-config",
        None,
        '{"topic": "orders", "name": "x"}',
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b"[" * 100_000, b"{}"),
        (b'{"kind": "other"}', b"[" * 100_000),
        (b"[]", b"{}"),
        (b"{}", b"{}"),
        (b'{"kind": "client-quota"}', b"{}"),
        (b'{"kind": "client-quota", "entity": [], "name": "x"}', b"{}"),
        (b'{"kind": "other"}', b"7"),
        (b'{"kind": "other"}', b"not json"),
        (b'{"kind": "other"}', b'{"at_ms": "noon"}'),
        (b'{"kind": "other"}', b'{"at_ms": 1e999}'),
        (b'{"kind": "other"}', b'{"expires_at_ms": -1e999}'),
    ],
)
def test_what_is_no_record_of_ours(key: bytes | None, value: bytes | None) -> None:
    assert parse(key, value, 5) is None


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        (ErrorCode.unknown_topic_or_partition, TopicMissing),
        (ErrorCode.topic_authorization_failed, UpstreamUnavailable),
    ],
)
async def test_a_topic_that_cannot_be_read_is_not_created(fault: ErrorCode, failure: type[Exception]) -> None:
    async with MetadataBroker() as broker:
        broker.fault = fault
        with pytest.raises(failure):
            await read_log(ClusterAccess((("127.0.0.1", 1), broker.address), 5.0), "orders")
        assert [asked.allow_auto_topic_creation for asked in broker.asked] == [False]


async def test_each_broker_that_does_not_respond_is_named() -> None:
    with pytest.raises(UpstreamUnavailable, match=r"127\.0\.0\.1:1: .*; \[::1\]:2: "):
        await read_log(ClusterAccess((("127.0.0.1", 1), ("::1", 2)), 5.0), "orders")


class NoStart(LogBroker):
    """Tells the end of the log, and not its start."""

    async def respond(self, request: Any) -> Any:
        if request.__api_key__ == LIST_OFFSETS and request.topics[0].partitions[0].timestamp != END:
            return None
        return await super().respond(request)


@pytest.mark.parametrize("made", [LogBroker, NoStart], ids=["no records", "no start"])
async def test_a_leader_without_responses_is_an_error(
    made: type[LogBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "READ_SECONDS", 1.0)
    async with made("quotas") as broker:
        broker.append([(b"key", b"value")])
        broker.silent.add(FETCH)
        with pytest.raises(UpstreamUnavailable, match="topic quotas"):
            await read_log(ClusterAccess((broker.address,), 5.0), "quotas")
