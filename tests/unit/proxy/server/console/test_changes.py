"""QuotaChanges at the admin port: the same rules as those of Kafka's APIs."""

import json

import pytest

from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.resources import BROKER, ConfigResource
from proxy.server.console.changes import InvalidChange, QuotaChanges
from tests.support.server.consoles import ALICE, ORDERS, PRODUCER, RATE, ConsoleKit

WHO = Identity("admin-port", "console", "10.0.0.7")


async def make(kit: ConsoleKit, **change: object) -> None:
    changes: QuotaChanges = kit.console._changes
    await changes.make(json.dumps(change).encode(), WHO)


async def test_clients() -> None:
    kit = ConsoleKit()
    await make(kit, entity={"user": "bob", "client-id": "<default>"}, values={PRODUCER: 5})
    assert kit.store.effective[QuotaEntity("bob", DEFAULT)] == {PRODUCER: 5.0}
    await make(kit, entity={"user": "alice"}, values={PRODUCER: None})
    assert ALICE not in kit.store.effective
    await make(kit, entity={"user": "alice"}, back_to_file=True)
    assert kit.store.effective[ALICE] == {PRODUCER: 1000.0}


async def test_topics_and_brokers() -> None:
    kit = ConsoleKit()
    await make(kit, entity={"topic": "orders"}, values={RATE: "5", "producer.byte.rate.action": "reject"})
    assert kit.store.configs[ORDERS] == {RATE: "5", "producer.byte.rate.action": "reject"}
    assert kit.store.topic_ids("orders")[RATE] == "01" * 16
    total = "total.bytes.in.per.sec.threshold"
    await make(kit, entity={"broker": "01"}, values={total: 9.0})
    assert kit.store.configs[ConfigResource(BROKER, "1")] == {total: "9"}
    await make(kit, entity={"topic": "orders"}, values={RATE: None}, back_to_file=True)
    assert kit.store.configs[ORDERS][RATE] == "100"


async def test_temporary() -> None:
    kit = ConsoleKit()
    end = kit.wall.ms + 1000
    await make(kit, entity={"topic": "<default>"}, values={RATE: 5}, expires_at_ms=end)
    [(place, setting)] = kit.log.records
    assert (place.temporary, setting.expires_at_ms) == (True, end)
    with pytest.raises(InvalidChange):  # the end is past
        await make(kit, entity={"user": "alice"}, values={PRODUCER: 5}, expires_at_ms=1)


@pytest.mark.parametrize(
    "change",
    [
        {"entity": {"user": "alice"}},
        {"entity": {}, "values": {PRODUCER: 5}},
        {"entity": {"user": ""}, "values": {PRODUCER: 5}},
        {"entity": {"usr": "alice"}, "values": {PRODUCER: 5}},
        {"entity": {"user": "alice"}, "values": {"speed": 5}},
        {"entity": {"user": "alice"}, "values": {PRODUCER: -1}},
        {"entity": {"user": "alice"}, "values": {PRODUCER: "5"}},
        {"entity": {"user": "alice"}, "values": {PRODUCER: True}},
        {"entity": {"user": "alice"}, "values": {PRODUCER: 5}, "back_to_file": True},
        {"entity": {"user": "alice"}, "values": {PRODUCER: 5}, "more": 1},
        {"entity": {"topic": "orders", "user": "a"}, "values": {RATE: 5}},
        {"entity": {"topic": "orders"}, "values": {RATE: "1MB"}},
        {"entity": {"user": "alice"}, "values": {PRODUCER: 10**400}},
        {"entity": {"user": "alice"}, "values": {PRODUCER: 5}, "expires_at_ms": 10**400},
        {"entity": {"topic": "orders"}, "values": {RATE: 10**400}},
        {"entity": {"topic": "orders"}, "values": {"retention.ms": 5}},
        {"entity": {"topic": "no-such-topic"}, "values": {RATE: 5}},
        {"entity": {"topic": ""}, "values": {RATE: 5}},
        {"entity": {"broker": "one"}, "values": {"total.bytes.in.per.sec.threshold": 5}},
        [],
    ],
)
async def test_wrong_changes_change_nothing(change: object) -> None:
    kit = ConsoleKit()
    with pytest.raises(InvalidChange):
        await kit.console._changes.make(json.dumps(change).encode(), WHO)
    assert kit.log.records == []


async def test_a_topic_is_not_accepted_unseen_before_a_broker_is_known() -> None:
    kit = ConsoleKit()
    kit.cluster.known = []
    with pytest.raises(InvalidChange):
        await make(kit, entity={"topic": "no-such-topic"}, values={RATE: 5})
    assert kit.log.records == []
    await make(kit, entity={"topic": "<default>"}, values={RATE: 5})


@pytest.mark.parametrize(("entity", "quota"), [({"user": "alice"}, PRODUCER), ({"topic": "orders"}, RATE)])
async def test_a_value_with_a_unit_is_rejected_with_the_number_to_write(
    entity: dict[str, str], quota: str
) -> None:
    with pytest.raises(InvalidChange, match=r"\b1000000\b.*\b1048576\b"):
        await make(ConsoleKit(), entity=entity, values={quota: "1MB/s"})
