"""ConfigsStore: which error each change has, and the ids of the topics that configs are stored for."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.broker import Broker
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.rejected import RequestRejected
from proxy.admin.yielder import Yielder
from proxy.errors import UpstreamUnavailable
from proxy.quota.identity import Identity
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.quota_store import ConfigChange, StoreUnavailable
from tests.support.admin.configs_broker import Counts, FakeBroker
from tests.support.messages.mutations import topic_id
from tests.support.quotas.memory_store import memory_store
from tests.support.turn_lengths import turn_lengths

WHO = Identity("admin", "tool", "10.0.0.1")
PART, TOTAL = "bytes.in.per.sec.threshold", "total.bytes.in.per.sec.threshold"
T, U, ABSENT = (ConfigResource(TOPIC, name) for name in ("t", "u", "absent"))
DEFAULT_BROKER = ConfigResource(BROKER, DEFAULT_RESOURCE)


class Away(Counts):
    async def topics(self, node_id: int, keys: Any) -> Any:
        raise UpstreamUnavailable("broker 1 is away")


def codes(results: list[RequestRejected | None]) -> list[ErrorCode | None]:
    return [None if found is None else found.code for found in results]


async def test_configs_are_stored_for_the_topic_that_has_the_name_now() -> None:
    store, log = memory_store({})
    changes = [
        ConfigChange(T, {PART: "1"}),
        ConfigChange(ABSENT, {PART: "2"}),
        ConfigChange(U, {PART: "3"}, topic_id="ab"),
        ConfigChange(ConfigResource(TOPIC, DEFAULT_RESOURCE), {PART: "4"}),
        ConfigChange(DEFAULT_BROKER, {TOTAL: "50"}),
    ]
    assert codes(await ConfigsStore(store).alter(changes, FakeBroker().broker(), WHO)) == [None] * 5
    ids = {str(setting.value): setting.topic_id for _, setting in log.records}
    assert ids == {"1": topic_id("t").hex, "2": None, "3": "ab", "4": None, "50": None}


async def test_without_the_cluster_they_are_stored_by_name() -> None:
    store, log = memory_store({})
    broker = FakeBroker().broker()
    away = Broker(broker.cluster_id, broker.node_id, Away({}), broker.ask, broker.rights)
    assert codes(await ConfigsStore(store).alter([ConfigChange(T, {PART: "1"})], away, WHO)) == [None]
    assert [setting.topic_id for _, setting in log.records] == [None]


async def test_a_conflict_rejects_only_the_changes_that_have_it() -> None:
    store, _ = memory_store({}, configs={DEFAULT_BROKER: {TOTAL: "10"}})
    changes = [ConfigChange(T, {PART: "6"}), ConfigChange(U, {PART: "5"}), ConfigChange(ABSENT, {PART: "4"})]
    results = await ConfigsStore(store).alter(changes, FakeBroker().broker(), WHO)
    assert codes(results) == [None, ErrorCode.invalid_config, None]
    assert {
        resource.name: configs[PART] for resource, configs in store.configs.items() if PART in configs
    } == {
        "t": "6",
        "absent": "4",
    }


async def test_a_change_that_may_have_been_stored_can_be_retried() -> None:
    store, log = memory_store({})
    log.failure = StoreUnavailable("no response")
    results = await ConfigsStore(store).alter([ConfigChange(T, {PART: "1"})], FakeBroker().broker(), WHO)
    assert codes(results) == [ErrorCode.request_timed_out]


async def test_it_is_known_beforehand_that_nothing_can_be_stored() -> None:
    store, log = memory_store({})
    configs = ConfigsStore(store)
    configs.check_open()
    log.problem = "no broker responds"
    with pytest.raises(RequestRejected) as caught:
        configs.check_open()
    assert caught.value.code is ErrorCode.request_timed_out


async def test_conflicts_name_the_changes_that_cannot_be_stored() -> None:
    store, _ = memory_store({}, configs={DEFAULT_BROKER: {TOTAL: "1001"}})
    changes = [ConfigChange(ConfigResource(TOPIC, f"t{number}"), {PART: "1"}) for number in range(1000)]
    changes[500] = ConfigChange(T, {PART: "3"})
    found = await ConfigsStore(store).conflicts(changes, Yielder())
    assert [place for place, why in enumerate(found) if why] == [999], "those before it fit exactly"
    changes[0] = ConfigChange(U, {PART: "1001"})
    found = await ConfigsStore(store).conflicts(changes, Yielder())
    assert not found[0]
    assert all(found[1:])
    assert await ConfigsStore(store).conflicts([], Yielder()) == []


@pytest.mark.parametrize("total", [1, 2000])
async def test_no_turn_is_longer_if_there_are_more_changes(total: int) -> None:
    """Whether they conflict or not."""
    store, _ = memory_store({}, configs={DEFAULT_BROKER: {TOTAL: str(total)}})
    changes = [ConfigChange(ConfigResource(TOPIC, f"t{number}"), {PART: "1"}) for number in range(2000)]
    async with turn_lengths() as turns:
        found = await ConfigsStore(store).conflicts(changes, Yielder())
    assert sum(not why for why in found) == total
    assert 0 < turns.longest < 20_000
