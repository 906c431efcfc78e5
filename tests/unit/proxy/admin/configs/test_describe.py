"""DescribeConfigs: quota configs in the response of the broker."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.configs import describe, memory
from proxy.admin.configs.describe import RESOURCES_AT_A_TIME, DescribeConfigs
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.messages.config_resources import LAYERS
from proxy.admin.yielder import STEPS
from proxy.quota.limits.resources import DEFAULT_RESOURCE, ConfigResource
from proxy.quota.limits.resources import TOPIC as TOPIC_RESOURCE
from proxy.relay.close_reasons import RelayError
from proxy.store.layer_report import LayerValue, decode_report
from proxy.wire.errors import Malformed
from tests.support.admin.configs_broker import FakeBroker
from tests.support.admin.configs_kit import (
    ACTION,
    BROKER_1,
    DEFAULT_BROKER,
    DEFAULT_TOPIC,
    FLAG,
    LOGGER,
    PART,
    RATE,
    REJECTED,
    REPLICAS,
    THEIRS,
    TOTAL,
    Kit,
    T,
    U,
)
from tests.support.loop_turns import counted_turns
from tests.support.messages.configs import (
    DESCRIBE,
    SET,
    TOPIC,
    Resource,
    Shown,
    describe_request,
    described,
)
from tests.support.messages.kio_messages import request_frame, versions
from tests.support.messages.mutations import intercepted
from tests.support.quotas.config_rules import CONFIG_RULES
from tests.support.quotas.memory_store import memory_store

every_describe = pytest.mark.parametrize("version", versions(DESCRIBE))


class TestDescribing:
    @every_describe
    async def test_quota_configs_are_added_to_the_brokers(self, version: int) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, DEFAULT_RESOURCE): {RATE: "7", PART: "8"}})
        await kit.set((T, [(RATE, SET, "5"), (REPLICAS, SET, "0:1")]), (BROKER_1, [(FLAG, SET, "true")]))
        configs = await kit.shown(T, version=version)
        assert {name: shown.value for name, shown in configs.items()} == {
            THEIRS: "5",
            RATE: "5",
            ACTION: "throttle",
            "consumer.byte.rate.action": "throttle",
            "topic.producer.byte.rate.action": "throttle",
            "topic.consumer.byte.rate.action": "throttle",
            PART: "8",
            REPLICAS: "0:1",
            "follower.replication.throttled.replicas": "",
        }
        if version >= 1:
            assert configs[RATE] == Shown("5", 1, (("5", 1), ("7", 3)))
            assert configs[PART] == Shown("8", 3, (("8", 3),))
            assert configs[REPLICAS] == Shown("0:1", 1, (("0:1", 1),))
            assert configs[ACTION] == Shown("throttle", 5), "as for topic configs that brokers lack"
            flag = (await kit.shown(BROKER_1, FLAG, version=version))[FLAG]
            assert flag == Shown("true", 2, (("true", 2), ("false", 5)))
            assert (await kit.shown(T, RATE, version=version, synonyms=False))[RATE].synonyms == ()

    async def test_types_and_documentation(self) -> None:
        kit = Kit()
        await kit.set((T, [(RATE, SET, "5")]), (BROKER_1, [(FLAG, SET, "true")]))
        for wanted in (True, False):
            asked = [(T, [RATE, REPLICAS, ACTION]), (BROKER_1, [FLAG])]
            response = await kit.describe(describe_request(asked, documentation=wanted))
            configs = [config for result in response.results for config in result.configs]
            types = {config.name: config.config_type for config in configs}
            assert types == {RATE: 5, REPLICAS: 7, ACTION: 2, FLAG: 1}
            assert all(bool(config.documentation) == wanted for config in configs if config.name != REPLICAS)
            assert not any(config.read_only or config.is_sensitive for config in configs)

    async def test_only_requested_configs(self) -> None:
        kit = Kit()
        await kit.set((T, [(RATE, SET, "5")]))
        assert set(await kit.shown(T, THEIRS)) == {THEIRS}
        assert set(await kit.shown(T, THEIRS, RATE)) == {THEIRS, RATE}
        assert await kit.shown(T, PART) == {PART: Shown(None, 5)}, "no value, shown to who asks for it"
        assert PART not in await kit.shown(T)

    async def test_request_is_forwarded_unchanged(self) -> None:
        kit = Kit()
        request = describe_request([(T, [RATE]), (LOGGER, None)])
        await kit.describe(request)
        assert kit.broker.frames == [request_frame(request)]

    async def test_default_topic_is_not_forwarded(self) -> None:
        kit = Kit()
        await kit.set((DEFAULT_TOPIC, [(RATE, SET, "5")]))
        response = await kit.describe(describe_request([(T, None), (DEFAULT_TOPIC, None), (U, None)]))
        shown = described(response)
        assert list(shown) == [T, DEFAULT_TOPIC, U]
        assert [resource.resource_name for resource in kit.broker.asked[-1].resources] == ["t", "u"]
        assert shown[DEFAULT_TOPIC][RATE] == Shown("5", 1, (("5", 1),))  # type: ignore[index]
        assert shown[T][RATE] == Shown("5", 3, (("5", 3),))  # type: ignore[index]
        before = len(kit.broker.asked)
        assert RATE in await kit.shown(DEFAULT_TOPIC)
        assert len(kit.broker.asked) == before

    async def test_default_broker_has_only_configs_that_are_set(self) -> None:
        kit = Kit()
        assert set(await kit.shown(DEFAULT_BROKER, FLAG, TOTAL)) == {FLAG, TOTAL}
        assert FLAG not in await kit.shown(DEFAULT_BROKER)
        await kit.set((DEFAULT_BROKER, [(FLAG, SET, "true")]))
        assert (await kit.shown(DEFAULT_BROKER))[FLAG] == Shown("true", 3, (("true", 3),))
        assert (await kit.shown(BROKER_1))[FLAG] == Shown("true", 3, (("true", 3), ("false", 5)))

    async def test_resource_rejected_by_the_broker_has_no_configs(self) -> None:
        kit = Kit(rejects={T: REJECTED})
        await kit.set((U, [(RATE, SET, "5")]))
        assert described(await kit.describe(describe_request([(T, None)]))) == {T: REJECTED}

    async def test_other_resources_have_no_quota_configs(self) -> None:
        assert set(await Kit().shown(LOGGER)) == {THEIRS, REPLICAS}

    async def test_request_without_resources(self) -> None:
        assert described(await Kit().describe(describe_request([]))) == {}


class TestLayers:
    @every_describe
    async def test_the_default_topic_has_the_quotas_of_all_resources(self, version: int) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, "t"): {RATE: "7"}})
        await kit.set((T, [(RATE, SET, "5")]), (DEFAULT_BROKER, [(TOTAL, SET, "9")]))
        configs = await kit.shown(DEFAULT_TOPIC, LAYERS, version=version)
        if version < 4:
            assert configs == {}, "too long for older versions"
            return
        report = decode_report(configs[LAYERS].value or "")
        assert report.topics == {"t": {RATE: [LayerValue("tools", "5"), LayerValue("file", "7")]}}
        assert report.brokers == {DEFAULT_RESOURCE: {TOTAL: [LayerValue("tools", "9")]}}
        assert RATE in report.names["topic"]

    async def test_nothing_else_has_it(self) -> None:
        kit = Kit()
        assert LAYERS not in await kit.shown(T, LAYERS)
        assert LAYERS not in await kit.shown(DEFAULT_TOPIC)

    async def test_back_to_the_file(self) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, "t"): {RATE: "7"}})
        await kit.set((T, [(RATE, SET, "5"), (PART, SET, "3")]))
        await kit.set((T, [("back.to.file", SET, "true")]))
        assert kit.configs == {"topic t": {RATE: "7"}}


async def test_each_step_of_very_many_resources_gives_way() -> None:
    """Reading the request and the response, finding the local results, and adding the quota configs."""
    unknown = [(TOPIC, f"t{number}") for number in range(4 * STEPS)]
    kit = Kit(rejects=dict.fromkeys(unknown, ErrorCode.unknown_topic_or_partition))
    async with counted_turns() as turns:
        await kit.describe(describe_request([(resource, None) for resource in unknown]))
    assert turns.count >= 4 * 4


def many(number: int) -> list[Resource]:
    return [(TOPIC, f"topic-{place}") for place in range(number)]


async def test_very_many_resources_are_forwarded_in_parts() -> None:
    kit = Kit()
    resources = many(2 * RESOURCES_AT_A_TIME + 50)
    response = await kit.describe(describe_request([(resource, None) for resource in resources]))
    assert list(described(response)) == resources
    asked = [len(request.resources) for request in kit.broker.asked]
    assert asked == [RESOURCES_AT_A_TIME, RESOURCES_AT_A_TIME, 50]


async def test_configs_beyond_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe, "MAX_REPEATED_BYTES", 100_000)
    kit = Kit()
    resources = [*many(20 * RESOURCES_AT_A_TIME - 1), many(1)[0]]
    with pytest.raises(Malformed, match=f"{len(resources)} resources, some more than once.*100000"):
        await kit.describe(describe_request([(resource, None) for resource in resources]))
    assert len(kit.broker.asked) < 20  # no more than that has been requested


async def test_all_resources_of_a_large_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe, "MAX_REPEATED_BYTES", 100_000)
    kit = Kit()
    resources = many(20 * RESOURCES_AT_A_TIME)
    response = await kit.describe(describe_request([(resource, None) for resource in resources]))
    assert list(described(response)) == resources


async def test_malformed_request_and_response() -> None:
    api = DescribeConfigs(ConfigsStore(memory_store({})[0]), CONFIG_RULES)
    frame = request_frame(describe_request([(T, None)]))
    broker = FakeBroker().broker()
    with pytest.raises(Malformed):
        await api.answer(intercepted(frame[:-3]), broker)

    async def ask(frame: bytes) -> bytes:
        return b"\0\0\0\1\0"

    broken = type(broker)(broker.cluster_id, broker.node_id, broker.counts, ask, broker.rights)
    with pytest.raises(RelayError, match="DescribeConfigs"):
        await api.answer(intercepted(frame), broken)


async def test_responses_that_are_not_read_delay_the_further_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FREE_BYTES", 100)
    kit = Kit()
    kit.reads = False
    request = describe_request([(T, None)])
    await kit.describe(request)
    waiting = [asyncio.ensure_future(kit.describe(request)) for _ in range(2)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(kit.broker.asked) == 1
    kit.read()
    for each in waiting:
        await each
        kit.read()
    assert len(kit.broker.asked) == 3


async def test_a_request_that_fails_keeps_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe, "MAX_REPEATED_BYTES", 100)
    monkeypatch.setattr(memory, "FREE_BYTES", 100)
    kit = Kit()
    for _ in range(2):
        with pytest.raises(Malformed):
            await kit.describe(describe_request([(T, None), (T, None)]))
