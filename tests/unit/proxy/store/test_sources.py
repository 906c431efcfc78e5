"""Configs of topics and brokers in the store: layers, records and snapshots as those of clients' quotas."""

import asyncio

import pytest

from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.config_keys import LEADER_THROTTLED_REPLICAS as THROTTLED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.quota_records import Place, Setting, Unreadable
from proxy.store.quota_store import ClientQuotaAlteration, ConfigChange, Conflict, QuotaStore, StoreOff
from tests.support.quotas.config_rules import too_much
from tests.support.quotas.memory_store import MemoryLog, Wall, file_of, memory_store

ORDERS, DEFAULT_TOPIC = ConfigResource(TOPIC, "orders"), ConfigResource(TOPIC, DEFAULT_RESOURCE)
BROKER_2, DEFAULT_BROKER = ConfigResource(BROKER, "2"), ConfigResource(BROKER, DEFAULT_RESOURCE)
RATE, FLAG = "producer.byte.rate", "leader.replication.throttled"
PART, TOTAL = "bytes.in.per.sec.threshold", "total.bytes.in.per.sec.threshold"
WHO = Identity("admin", "adminclient-1", "10.0.0.1")


class Kit:
    """A store on a file's configs, its log, and the limits that it has given out."""

    def __init__(self, file: dict[ConfigResource, dict[str, str]] | None = None) -> None:
        self.wall = Wall()
        self.given: list[Limits] = []
        self.ended = asyncio.Event()
        self.store: QuotaStore
        self.log: MemoryLog
        self.store, self.log = memory_store({}, self._take, self.wall, file)

    def _take(self, limits: Limits) -> None:
        self.given.append(limits)
        if len(self.given) > 1:
            self.ended.set()

    async def alter(self, *changes: ConfigChange) -> list[tuple[Place, Setting]]:
        before = len(self.log.records)
        await self.store.alter_configs(changes, WHO)
        return self.log.records[before:]

    @property
    def topics(self) -> dict[str, dict[str, str]]:
        return self.store.limits.resources.topics

    @property
    def brokers(self) -> dict[str, dict[str, str]]:
        return self.store.limits.resources.brokers


def setting(value: str | None, **more: object) -> Setting:
    return Setting(value=value, by="a", client_id="b", origin="c", at_ms=1, **more)  # type: ignore[arg-type]


async def test_change_is_stored_with_its_author_and_takes_effect() -> None:
    kit = Kit({DEFAULT_TOPIC: {RATE: "7"}})
    change = ConfigChange(ORDERS, {RATE: "5"}, topic_id="0f")
    [(place, what)] = await kit.alter(change)
    assert place == Place(ORDERS, RATE)
    assert what == Setting(
        value="5", topic_id="0f", by="admin", client_id="adminclient-1", origin="10.0.0.1", at_ms=kit.wall.ms
    )
    assert kit.topics == {"orders": {RATE: "5"}, DEFAULT_RESOURCE: {RATE: "7"}}
    assert kit.store.configs == {ORDERS: {RATE: "5"}, DEFAULT_TOPIC: {RATE: "7"}}
    assert len(kit.given) == 1
    assert await kit.alter(change) == [], "it is so already"


async def test_same_value_for_a_recreated_topic_is_stored_with_its_id() -> None:
    """The value of the earlier topic is going to be removed."""
    kit = Kit({})
    await kit.alter(ConfigChange(ORDERS, {RATE: "5", PART: "3"}, topic_id="0f"))
    [(place, what)] = await kit.alter(ConfigChange(ORDERS, {RATE: "5"}, topic_id="0e"))
    assert (place, what.value, what.topic_id) == (Place(ORDERS, RATE), "5", "0e")
    assert kit.store.topic_ids("orders") == {RATE: "0e", PART: "0f"}
    assert await kit.alter(ConfigChange(ORDERS, {RATE: "5"}, topic_id="0e")) == []
    assert await kit.alter(ConfigChange(ORDERS, {PART: "3"})) == [], "the id of this topic is unknown"


async def test_removal_hides_the_file() -> None:
    kit = Kit({BROKER_2: {FLAG: "true"}})
    [(_, what)] = await kit.alter(ConfigChange(BROKER_2, {FLAG: None}))
    assert what.removed
    assert kit.brokers == {}
    await kit.alter(ConfigChange(BROKER_2, {FLAG: "false"}))
    [(_, what)] = await kit.alter(ConfigChange(BROKER_2, {FLAG: None, TOTAL: None}))
    assert what.removed


async def test_client_quotas_and_configs_change_independently() -> None:
    kit = Kit({ORDERS: {RATE: "5"}})
    await kit.store.alter(
        [ClientQuotaAlteration(QuotaEntity("alice", None), {"producer_byte_rate": 9.0})], WHO
    )
    await kit.alter(ConfigChange(DEFAULT_BROKER, {FLAG: "true"}))
    assert kit.store.limits.limit("producer_byte_rate", "alice", "") == 9
    assert (kit.topics, kit.brokers) == ({"orders": {RATE: "5"}}, {DEFAULT_RESOURCE: {FLAG: "true"}})


async def test_temporary_value_expires() -> None:
    kit = Kit({ORDERS: {RATE: "5"}})
    await kit.alter(ConfigChange(ORDERS, {RATE: "50"}, kit.wall.ms + 100))
    assert kit.topics == {"orders": {RATE: "50"}}
    kit.wall.ms += 100
    async with asyncio.timeout(30):
        await kit.ended.wait()
    assert kit.topics == {"orders": {RATE: "5"}}
    kit.store.close()


async def test_conflicting_changes_are_rejected_as_a_whole() -> None:
    kit = Kit({DEFAULT_BROKER: {TOTAL: "10"}, ORDERS: {PART: "6"}})
    with pytest.raises(Conflict, match=r"\b11\b.*\b10\b"):
        await kit.alter(
            ConfigChange(ConfigResource(TOPIC, "a"), {PART: "5"}), ConfigChange(BROKER_2, {FLAG: "true"})
        )
    with pytest.raises(Conflict, match=r"\b6\b.*\b5\b"):
        await kit.alter(ConfigChange(DEFAULT_BROKER, {TOTAL: "5"}))
    assert kit.log.records == []
    await kit.alter(ConfigChange(ConfigResource(TOPIC, "a"), {PART: "5"}), ConfigChange(ORDERS, {PART: "5"}))
    assert kit.topics == {"a": {PART: "5"}, "orders": {PART: "5"}}


def test_conflict_of_file_and_tools_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    kit = Kit({DEFAULT_BROKER: {TOTAL: "10"}})
    for value in ("11", "11"):
        kit.store.read([(Place(ORDERS, PART), setting(value))])
        kit.store.read([(Place(ORDERS, RATE), setting(value))])
    assert caplog.text.count(too_much("orders (11)", 11, 10)) == 1
    assert kit.topics == {"orders": {PART: "11", RATE: "11"}}


async def test_concurrent_changes_that_conflict_are_not_both_stored() -> None:
    kit = Kit({DEFAULT_BROKER: {TOTAL: "10"}})
    changes = [ConfigChange(ConfigResource(TOPIC, name), {PART: "6"}) for name in "ab"]
    done = await asyncio.gather(*(kit.alter(change) for change in changes), return_exceptions=True)
    assert [type(result) for result in done] == [list, Conflict]


async def test_without_a_log_changes_are_rejected() -> None:
    kit = Kit()
    kit.store.log = None
    with pytest.raises(StoreOff):
        await kit.alter(ConfigChange(ORDERS, {RATE: "5"}))


def test_the_log_is_read_from_its_start() -> None:
    kit = Kit({ORDERS: {RATE: "5"}})
    kit.store.read([(Place(ORDERS, RATE), setting("6")), (Place(BROKER_2, FLAG), setting("true"))])
    assert (kit.topics, kit.brokers) == ({"orders": {RATE: "6"}}, {"2": {FLAG: "true"}})
    kit.store.read_anew()
    kit.store.read([(Place(ORDERS, RATE), setting("7"))])
    assert kit.topics == {"orders": {RATE: "6"}}, "until the end is reached, what was known holds"
    kit.store.read_to_end()
    assert (kit.topics, kit.brokers) == ({"orders": {RATE: "7"}}, {})
    kit.store.read([(Place(ORDERS, RATE), None)])
    assert kit.topics == {"orders": {RATE: "5"}}


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (Place(ORDERS, RATE), "fast", r"topic orders\b.*\bfast\b"),
        (Place(ORDERS, THROTTLED.name), "a:b:c,,*", r"topic orders\b.*a:b:c, , \*"),
        (Place(BROKER_2, FLAG), "maybe", r"broker 2\b.*\bmaybe\b"),
    ],
)
def test_a_record_with_an_invalid_value_is_unreadable(place: Place, value: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        Kit().store.check(place, setting(value))


def test_what_no_rule_forbids() -> None:
    for place, value in (
        (Place(ORDERS, RATE), setting("5")),
        (Place(ORDERS, RATE), setting(None, removed=True)),
        (Place(ORDERS, RATE), None),
        (Place(ORDERS, "unknown"), setting("fast")),
    ):
        Kit().store.check(place, value)


def test_values_take_their_canonical_spelling() -> None:
    """The quotas compare texts: of ` * `, no replica would be throttled."""
    kit = Kit()
    kit.store.read(
        [
            (Place(ORDERS, RATE), setting(" 05 ")),
            (Place(ORDERS, THROTTLED.name), setting(" * ")),
            (Place(BROKER_2, FLAG), setting("TRUE")),
            (Place(ORDERS, "unknown"), setting(" x ")),
        ]
    )
    assert kit.topics == {"orders": {RATE: "5", THROTTLED.name: "*", "unknown": " x "}}
    assert kit.brokers == {"2": {FLAG: "true"}}


async def test_topic_ids_are_known_while_a_config_is_set() -> None:
    kit = Kit({ORDERS: {PART: "3"}})
    kit.store.read_anew()
    kit.store.read([(Place(ORDERS, RATE), setting("5", topic_id="0f"))])
    kit.store.read_to_end()
    assert kit.store.topic_ids("orders") == {RATE: "0f"}
    kit.store.read([(Place(ORDERS, PART), setting(None, removed=True, topic_id="0e"))])
    assert kit.store.topic_ids("orders") == {PART: "0e", RATE: "0f"}
    assert await kit.store.forget_topic_configs("orders", {PART: "0e", RATE: "0e"}, WHO) == [PART]
    assert kit.store.topic_ids("orders") == {RATE: "0f"}
    assert await kit.store.forget_topic_configs("orders", {PART: "0e", RATE: "0f"}, WHO) == [RATE]
    assert kit.store.topic_ids("orders") == {}
    assert kit.store._topic_ids == {}
    assert kit.topics == {"orders": {PART: "3"}}


async def test_another_file() -> None:
    kit = Kit({ORDERS: {RATE: "5"}})
    await kit.store.use_file(file_of({}, {DEFAULT_TOPIC: {RATE: "6"}}))
    assert kit.topics == {DEFAULT_RESOURCE: {RATE: "6"}}
    other = file_of({}, {BROKER_2: {FLAG: "true"}})
    other.settings = "others"
    await kit.store.use_file(other)
    assert (kit.topics, kit.brokers) == ({}, {"2": {FLAG: "true"}})


async def test_back_to_the_file() -> None:
    """A removed and a changed value of the file, and one that only tools have."""
    kit = Kit({ORDERS: {RATE: "7", PART: "8"}})
    await kit.alter(ConfigChange(ORDERS, {RATE: None, PART: "9", THROTTLED.name: "0:1"}))
    await kit.alter(ConfigChange(ORDERS, {PART: "10"}, expires_at_ms=kit.wall.ms + 1000))
    await kit.alter(ConfigChange(ORDERS, {RATE: None}, back_to_file=True))
    assert kit.topics["orders"] == {RATE: "7", PART: "10", THROTTLED.name: "0:1"}
    await kit.alter(ConfigChange(ORDERS, {}, back_to_file=True))
    assert kit.topics["orders"] == {RATE: "7", PART: "8"}
    assert await kit.alter(ConfigChange(ORDERS, {}, back_to_file=True)) == [], "a second time"
    assert kit.store.topics_set() == set()


async def test_back_to_the_file_may_set_others() -> None:
    kit = Kit({ORDERS: {RATE: "7"}})
    await kit.alter(ConfigChange(ORDERS, {RATE: "1"}))
    await kit.alter(ConfigChange(ORDERS, {RATE: None, PART: "3"}, back_to_file=True))
    assert kit.topics["orders"] == {RATE: "7", PART: "3"}


async def test_back_to_a_file_with_a_conflict_is_rejected() -> None:
    kit = Kit({ORDERS: {PART: "5"}})
    await kit.alter(ConfigChange(ORDERS, {PART: None}))
    await kit.alter(ConfigChange(DEFAULT_BROKER, {TOTAL: "4"}))
    with pytest.raises(Conflict):
        await kit.alter(ConfigChange(ORDERS, {}, back_to_file=True))
