"""Which quota applies, and what each layer says."""

import random

from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.resources import LONG, TOPIC, ConfigResource
from proxy.quota.quota import QuotaKey
from proxy.server.console.explain import explain_client, explain_ip, explain_resource
from proxy.store.quota_store import ClientQuotaAlteration
from tests.support.quotas.memory_store import memory_store
from tests.support.server.consoles import ALICE, PRODUCER, RATE, ConsoleKit

KEYS = [QuotaKey(PRODUCER, LONG), QuotaKey("connection_creation_rate", LONG, for_ip=True)]
WHO = Identity("admin", "c", "10.0.0.1")


async def test_layers_of_every_entity_that_may_apply() -> None:
    kit = ConsoleKit()
    await kit.store.alter(
        [ClientQuotaAlteration(ALICE, {PRODUCER: 7.0}, expires_at_ms=kit.wall.ms + 1000)], WHO
    )
    [found] = explain_client(kit.store, KEYS, ("alice", ""), "app")
    assert (found["limit"], found["entity"], found["scope"]) == (7.0, {"user": "alice"}, "broker")
    assert found["candidates"] == [
        {
            "entity": {"user": "alice"},
            "values": [
                {"from": "tools", "value": 7.0, "expires_at_ms": kit.wall.ms + 1000},
                {"from": "file", "value": 1000.0},
            ],
        },
        {"entity": {"user": "<default>"}, "values": [{"from": "file", "value": 500.0}]},
    ]


async def test_removed_quota_of_the_file_gives_way_to_the_next() -> None:
    kit = ConsoleKit()
    await kit.store.alter([ClientQuotaAlteration(ALICE, {PRODUCER: None})], WHO)
    [found] = explain_client(kit.store, KEYS, ("alice", ""), "")
    assert (found["limit"], found["entity"]) == (500.0, {"user": "<default>"})
    assert found["candidates"][0]["values"] == [
        {"from": "tools", "value": None},
        {"from": "file", "value": 1000.0},
    ]


def test_what_applies_is_what_limits_finds() -> None:
    generator = random.Random(5)
    names = [None, DEFAULT, "a"]
    for _ in range(300):
        quotas = {
            QuotaEntity(user, client_id): {PRODUCER: float(generator.randint(1, 9))}
            for user in names
            for client_id in names
            if (user, client_id) != (None, None) and generator.random() < 0.4
        }
        store, _ = memory_store(quotas)
        for client_id in ("a", "b", ""):
            [found] = explain_client(store, KEYS, ("a", ""), client_id)
            bucket = store.limits.bucket(PRODUCER, "a", client_id)
            limit = None if bucket is None else store.limits.limit(PRODUCER, *bucket)
            assert found["limit"] == limit
            assert (found["entity"] is None) == (limit is None)


def test_addresses_and_networks() -> None:
    kit = ConsoleKit()
    [inside] = explain_ip(kit.store, KEYS, "10.1.2.3")
    assert (inside["limit"], inside["entity"]) == (20.0, {"ip": "10.0.0.0/8"})
    [outside] = explain_ip(kit.store, KEYS, "192.168.0.1")
    assert (outside["limit"], outside["entity"], outside["candidates"]) == (None, None, [])


def test_topics() -> None:
    kit = ConsoleKit()
    rules = ConfigRules(load_kinds())
    found = {
        each["quota"]: each for each in explain_resource(kit.store, rules, ConfigResource(TOPIC, "orders"))
    }
    assert (found[RATE]["limit"], found[RATE]["entity"]) == ("100", {"topic": "orders"})
    assert found["consumer.byte.rate"]["entity"] == {"topic": "<default>"}
    action = found["producer.byte.rate.action"]
    assert (action["limit"], action["entity"], action["candidates"]) == ("throttle", None, [])
