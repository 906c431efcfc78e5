"""Requests about configs of topics and brokers: ours, the broker's, and the one answer to both."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.configs import ResourceConfigs
from proxy.admin.configs_store import ConfigsStore
from proxy.quota.config_rules import ConfigRules
from proxy.quota.resources import DEFAULT_RESOURCE, ConfigResource
from proxy.quota.resources import TOPIC as TOPIC_RESOURCE
from proxy.relay.errors import RelayError
from proxy.store.layers import Temporary
from proxy.store.quota_store import StoreUnavailable
from proxy.wire.errors import Malformed
from tests.support.config_rules import CONFIG_RULES, KIND, PASSED_ON
from tests.support.configs import (
    ALTER,
    APPEND,
    BROKER,
    DELETE,
    DESCRIBE,
    INCREMENTAL,
    SET,
    SUBTRACT,
    TOPIC,
    Resource,
    Results,
    Shown,
    alter_request,
    describe_request,
    described,
    incremental_request,
    results,
)
from tests.support.configs_broker import FakeBroker
from tests.support.memory_store import Wall, memory_store
from tests.support.messages import read_frame, request_frame, response_type, versions
from tests.support.mutations import intercepted, topic_id
from tests.support.rights import FixedRights

T, U, DEFAULT_TOPIC = (TOPIC, "t"), (TOPIC, "u"), (TOPIC, DEFAULT_RESOURCE)
BROKER_1, DEFAULT_BROKER, LOGGER = (BROKER, "1"), (BROKER, ""), (8, "1")
RATE, REPLICAS, PART = (
    "producer.byte.rate",
    "leader.replication.throttled.replicas",
    "bytes.in.per.sec.threshold",
)
TOTAL, FLAG, ACTION = (
    "total.bytes.in.per.sec.threshold",
    "leader.replication.throttled",
    "producer.byte.rate.action",
)
THEIRS, EXPIRES = "retention.ms", "expires.at.ms"
WALL_MS = Wall().ms
NONE, INVALID_CONFIG, INVALID_REQUEST = ErrorCode.none, ErrorCode.invalid_config, ErrorCode.invalid_request
REFUSED = ErrorCode.topic_authorization_failed
every_incremental = pytest.mark.parametrize("version", versions(INCREMENTAL))
every_alter = pytest.mark.parametrize("version", versions(ALTER))
every_describe = pytest.mark.parametrize("version", versions(DESCRIBE))


class Kit:
    """The proxy's part before a broker, with a store in memory."""

    def __init__(
        self,
        file: dict[ConfigResource, dict[str, str]] | None = None,
        refuses: dict[Resource, ErrorCode] | None = None,
        rules: ConfigRules = CONFIG_RULES,
    ) -> None:
        self.store, self.log = memory_store({}, configs=file)
        self.broker = FakeBroker(refuses)
        self._apis = ResourceConfigs(ConfigsStore(self.store), rules, lambda: WALL_MS)

    async def set(
        self, *resources: tuple[Resource, list[tuple[str, int, str | None]]], **more: Any
    ) -> Results:
        """The results of IncrementalAlterConfigs."""
        return await self._alter(incremental_request(resources, **more))

    async def replace(self, *resources: tuple[Resource, dict[str, str | None]], **more: Any) -> Results:
        """The results of AlterConfigs."""
        return await self._alter(alter_request(resources, **more))

    async def _alter(self, request: Any) -> Results:
        frame = await self._apis.alter(intercepted(request_frame(request)), self.broker.broker())
        return results(read_frame(response_type(int(request.__api_key__), int(request.__version__)), frame))

    async def describe(self, request: Any) -> Any:
        """The answer to DescribeConfigs."""
        frame = await self._apis.describe(intercepted(request_frame(request)), self.broker.broker())
        return read_frame(response_type(DESCRIBE, int(request.__version__)), frame)

    async def shown(self, resource: Resource, *names: str, **more: Any) -> dict[str, Shown]:
        [configs] = described(
            await self.describe(describe_request([(resource, names or None)], **more))
        ).values()
        assert not isinstance(configs, ErrorCode)
        return configs

    @property
    def configs(self) -> dict[str, dict[str, str]]:
        return {str(resource): values for resource, values in self.store.configs.items()}

    def asked(self) -> list[tuple[Resource, dict[str, str | None]]]:
        """What the broker was asked to alter, the last time."""
        return [
            (
                (int(resource.resource_type), resource.resource_name),
                {config.name: config.value for config in resource.configs},
            )
            for resource in self.broker.asked[-1].resources
        ]


class TestIncremental:
    @every_incremental
    async def test_ours_are_stored_and_theirs_go_to_the_broker(self, version: int) -> None:
        kit = Kit()
        ops = [(RATE, SET, " 05"), (THEIRS, SET, "60000"), (ACTION, SET, "reject")]
        done = await kit.set((T, ops), (BROKER_1, [(FLAG, SET, "TRUE")]), version=version)
        assert done == [(T, NONE, None), (BROKER_1, NONE, None)]
        assert kit.configs == {"topic t": {RATE: "5", ACTION: "reject"}, "broker 1": {FLAG: "true"}}
        assert kit.asked() == [(T, {THEIRS: "60000"}), (BROKER_1, {})]
        assert [setting.topic_id for _, setting in kit.log.records] == [topic_id("t").hex] * 2 + [None]

    async def test_what_is_not_ours_goes_on_as_it_came(self) -> None:
        kit = Kit()
        resources = [(T, [(THEIRS, SET, "5"), ("x", APPEND, "y")]), (LOGGER, [(RATE, SET, "y")])]
        request = incremental_request(resources, validate_only=True)
        frame = request_frame(request)
        await kit._alter(request)
        assert kit.broker.frames == [frame]
        assert kit.configs == {}

    async def test_deleting_is_fine_whether_there_is_a_value_or_not(self) -> None:
        kit = Kit()
        await kit.set((T, [(RATE, SET, "5")]))
        assert await kit.set((T, [(RATE, DELETE, None), (PART, DELETE, "x")])) == [(T, NONE, None)]
        assert kit.configs == {}

    async def test_lists_grow_and_shrink(self) -> None:
        kit = Kit()
        assert await kit.set((T, [(REPLICAS, APPEND, "0:1, 1:2")])) == [(T, NONE, None)]
        await kit.set((T, [(REPLICAS, APPEND, "1:2,2:3")]))
        assert kit.configs == {"topic t": {REPLICAS: "0:1,1:2,2:3"}}
        await kit.set((T, [(REPLICAS, SUBTRACT, "0:1,2:3,7:7")]))
        assert kit.configs == {"topic t": {REPLICAS: "1:2"}}
        await kit.set((T, [(REPLICAS, SUBTRACT, "1:2")]))
        assert kit.configs == {"topic t": {REPLICAS: ""}}

    @every_incremental
    @pytest.mark.parametrize(
        ("ops", "code", "message"),
        [
            (
                [(RATE, SET, "0")],
                INVALID_CONFIG,
                "Invalid value 0 for configuration producer.byte.rate: Value",
            ),
            (
                [(RATE, SET, "x")],
                INVALID_CONFIG,
                "Invalid value x for configuration producer.byte.rate: Not a",
            ),
            ([(ACTION, SET, "omit")], INVALID_CONFIG, "String must be one of: throttle, reject"),
            ([(REPLICAS, SET, "0")], INVALID_CONFIG, "[partitionId]:[brokerId]"),
            ([(REPLICAS, APPEND, "*"), (RATE, SET, "5")], INVALID_CONFIG, "must be the literal '*'"),
            ([(RATE, SET, None)], INVALID_REQUEST, "Null value not supported for : producer.byte.rate"),
            ([(RATE, SET, "5"), (RATE, SET, "6")], INVALID_REQUEST, "duplicate config keys"),
            (
                [(RATE, APPEND, "5")],
                INVALID_CONFIG,
                "Can't APPEND to key producer.byte.rate because its type",
            ),
            ([(RATE, SUBTRACT, "5")], INVALID_CONFIG, "Can't SUBTRACT from key producer.byte.rate"),
            ([(RATE, 9, "5")], INVALID_REQUEST, "operation 9 of producer.byte.rate is not known"),
        ],
    )
    async def test_what_kafka_would_refuse(
        self, version: int, ops: list[tuple[str, int, str | None]], code: ErrorCode, message: str
    ) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, "t"): {REPLICAS: "0:1"}})
        done = await kit.set((T, [(THEIRS, SET, "1"), *ops]), (U, [(RATE, SET, "6")]), version=version)
        [(first, first_code, said), second] = done
        assert (first, first_code) == (T, code)
        assert said is not None
        assert message in said
        assert second == (U, NONE, None)
        assert kit.asked() == [(U, {})], "a resource that is refused is refused whole"
        assert kit.configs == {"topic t": {REPLICAS: "0:1"}, "topic u": {RATE: "6"}}

    async def test_what_the_broker_refuses_is_not_stored(self) -> None:
        kit = Kit(refuses={T: REFUSED})
        done = await kit.set((U, [(RATE, SET, "5")]), (T, [(RATE, SET, "5"), (THEIRS, SET, "5")]))
        assert done == [(U, NONE, None), (T, REFUSED, "because")]
        assert kit.configs == {"topic u": {RATE: "5"}}

    async def test_who_may_not_change_quotas_changes_nothing(self) -> None:
        kit = Kit()
        kit.broker.rights = FixedRights(may=False)
        done = await kit.set(
            (T, [(RATE, SET, "5"), (THEIRS, SET, "5")]),
            (U, [(THEIRS, SET, "5")]),
            (BROKER_1, [(FLAG, SET, "true")]),
            (DEFAULT_TOPIC, [(RATE, SET, "5")]),
        )
        assert {resource: code for resource, code, _ in done} == {
            T: ErrorCode.topic_authorization_failed,
            U: NONE,
            BROKER_1: ErrorCode.cluster_authorization_failed,
            DEFAULT_TOPIC: ErrorCode.topic_authorization_failed,
        }
        assert kit.asked() == [(U, {THEIRS: "5"})]
        assert kit.configs == {}

    async def test_a_resource_that_is_there_twice_is_the_brokers_to_refuse(self) -> None:
        kit = Kit(refuses={T: INVALID_REQUEST})
        done = await kit.set((T, [(RATE, SET, "5")]), (U, [(RATE, SET, "5")]), (T, [(THEIRS, SET, "5")]))
        assert done == [(T, INVALID_REQUEST, "because"), (U, NONE, None), (T, INVALID_REQUEST, "because")]
        assert kit.configs == {"topic u": {RATE: "5"}}

    async def test_the_default_topic_is_no_brokers(self) -> None:
        kit = Kit()
        assert await kit.set((DEFAULT_TOPIC, [(RATE, SET, "5")])) == [(DEFAULT_TOPIC, NONE, None)]
        assert kit.broker.asked == []
        done = await kit.set((DEFAULT_TOPIC, [(THEIRS, SET, "5")]), (T, [(THEIRS, SET, "5")]))
        assert [code for _, code, _ in done] == [INVALID_CONFIG, NONE]
        assert "Unknown topic config name: retention.ms" in str(done[0][2])
        done = await kit.set((DEFAULT_TOPIC, [(RATE, SET, "6")]), (DEFAULT_TOPIC, [(RATE, SET, "7")]))
        assert [code for _, code, _ in done] == [INVALID_REQUEST] * 2
        assert kit.configs == {"topic <default>": {RATE: "5"}}

    async def test_validate_only_changes_nothing(self) -> None:
        kit = Kit()
        done = await kit.set((T, [(RATE, SET, "5")]), (U, [(RATE, SET, "0")]), validate_only=True)
        assert [code for _, code, _ in done] == [NONE, INVALID_CONFIG]
        assert kit.broker.asked[-1].validate_only
        assert kit.log.records == []

    async def test_brokers_are_named_by_number_and_the_default_is_empty(self) -> None:
        kit = Kit(refuses={(BROKER, "x"): INVALID_REQUEST})
        done = await kit.set(
            (DEFAULT_BROKER, [(FLAG, SET, "true")]),
            ((BROKER, "01"), [(FLAG, SET, "true")]),
            ((BROKER, "x"), [(FLAG, SET, "true")]),
        )
        assert [code for _, code, _ in done] == [NONE, NONE, INVALID_REQUEST]
        assert kit.configs == {"broker <default>": {FLAG: "true"}, "broker 1": {FLAG: "true"}}

    async def test_what_cannot_be_together(self) -> None:
        kit = Kit()
        done = await kit.set(
            (DEFAULT_BROKER, [(TOTAL, SET, "10")]),
            (T, [(PART, SET, "6")]),
            (U, [(PART, SET, "5"), (THEIRS, SET, "1")]),
        )
        assert done == [
            (DEFAULT_BROKER, NONE, None),
            (T, NONE, None),
            (U, INVALID_CONFIG, "11 is more than 10"),
        ]
        assert kit.asked() == [(DEFAULT_BROKER, {}), (T, {})]
        assert (await kit.set((DEFAULT_BROKER, [(TOTAL, SET, "5")])))[0][1] == INVALID_CONFIG
        assert kit.configs == {"broker <default>": {TOTAL: "10"}, "topic t": {PART: "6"}}

    async def test_while_the_store_is_away(self) -> None:
        kit = Kit(refuses={(TOPIC, "v"): REFUSED})
        kit.log.failure = StoreUnavailable("it is away; try again")
        done = await kit.set(
            (T, [(RATE, SET, "5")]),
            (U, [(RATE, SET, "5"), (THEIRS, SET, "5")]),
            ((TOPIC, "v"), [(RATE, SET, "5")]),
            (DEFAULT_TOPIC, [(RATE, SET, "5")]),
            (BROKER_1, [(THEIRS, SET, "5")]),
        )
        away = ErrorCode.request_timed_out
        assert done == [
            (T, away, "it is away; try again"),
            (U, away, "Kafka's own configs of the resource are set; it is away; try again"),
            ((TOPIC, "v"), REFUSED, "because"),
            (DEFAULT_TOPIC, away, "it is away; try again"),
            (BROKER_1, NONE, None),
        ]
        assert kit.configs == {}

    async def test_without_a_store(self) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, "t"): {RATE: "5"}})
        kit.store.log = None
        done = await kit.set(
            (T, [(RATE, SET, "6")]), (U, [(THEIRS, SET, "6")]), (DEFAULT_TOPIC, [(RATE, DELETE, "")])
        )
        assert [code for _, code, _ in done] == [ErrorCode.policy_violation, NONE, NONE]
        assert "configuration file alone" in str(done[0][2])
        assert kit.asked() == [(U, {THEIRS: "6"})]
        assert await kit.set((T, [(RATE, SET, "5")])) == [(T, NONE, None)], "it is so"
        assert await kit.replace((T, {THEIRS: "5"})) == [(T, NONE, None)], "nothing of the file's is erased"

    async def test_for_a_time(self) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, "t"): {RATE: "5"}})
        until = (EXPIRES, SET, str(WALL_MS + 100))
        assert await kit.set((T, [(RATE, SET, "50"), until]), (BROKER_1, [(FLAG, SET, "true"), until])) == [
            (T, NONE, None),
            (BROKER_1, NONE, None),
        ]
        assert kit.configs == {"topic t": {RATE: "50"}, "broker 1": {FLAG: "true"}}
        assert [setting.expires_at_ms for _, setting in kit.log.records] == [WALL_MS + 100] * 2
        assert kit.asked() == [(T, {}), (BROKER_1, {})]
        assert EXPIRES not in await kit.shown(T)
        assert await kit.set((T, [(EXPIRES, DELETE, None)])) == [(T, NONE, None)]
        assert kit.configs["topic t"] == {RATE: "5"}
        kit.store.close()

    @pytest.mark.parametrize(
        ("ops", "code"),
        [
            ([(EXPIRES, SET, str(WALL_MS))], INVALID_CONFIG),
            ([(EXPIRES, SET, str(WALL_MS + 1))], INVALID_CONFIG),
            ([(RATE, SET, "5"), (EXPIRES, SET, str(WALL_MS))], INVALID_CONFIG),
            ([(RATE, SET, "5"), (EXPIRES, SET, "9" * 5000)], INVALID_CONFIG),
            ([(RATE, SET, "5"), (EXPIRES, SET, "soon")], INVALID_CONFIG),
            ([(RATE, SET, "5"), (EXPIRES, SET, None)], INVALID_REQUEST),
            ([(RATE, SET, "5"), (EXPIRES, APPEND, "5")], INVALID_REQUEST),
            ([(RATE, SET, "5"), (EXPIRES, DELETE, None), (EXPIRES, DELETE, None)], INVALID_REQUEST),
        ],
    )
    async def test_for_no_time(self, ops: list[tuple[str, int, str | None]], code: ErrorCode) -> None:
        kit = Kit()
        [(_, refused, message)] = await kit.set((T, ops))
        assert refused == code
        assert EXPIRES in str(message)
        [(_, refused, _)] = await kit.replace((T, {RATE: "5", EXPIRES: str(WALL_MS + 100)}))
        assert refused == INVALID_CONFIG
        assert kit.log.records == []

    async def test_what_brokers_enforce_too(self) -> None:
        kit = Kit(rules=ConfigRules([KIND], passed_on=frozenset([REPLICAS]), unenforced=frozenset([FLAG])))
        done = await kit.set((T, [(REPLICAS, SET, "*"), (RATE, SET, "5")]), (BROKER_1, [(FLAG, SET, "true")]))
        assert [code for _, code, _ in done] == [NONE, INVALID_CONFIG]
        assert "is enforced where the proxy has a replication listener" in str(done[1][2])
        assert kit.asked() == [(T, {REPLICAS: "*"})]
        assert kit.configs == {"topic t": {REPLICAS: "*", RATE: "5"}}
        until = (EXPIRES, SET, str(WALL_MS + 100))
        done = await kit.set((U, [(REPLICAS, SET, "*"), until]), (BROKER_1, [(FLAG, DELETE, None)]))
        assert [code for _, code, _ in done] == [INVALID_CONFIG, NONE]
        assert "where nothing would end it" in str(done[0][2])

    async def test_no_resource_at_all(self) -> None:
        assert await Kit().set() == []


class TestReplacing:
    @every_alter
    async def test_what_is_not_named_is_erased_ours_as_kafkas(self, version: int) -> None:
        file = {ConfigResource(TOPIC_RESOURCE, "t"): {PART: "3"}}
        kit = Kit(file)
        await kit.set((T, [(RATE, SET, "5"), (REPLICAS, SET, "*")]), (U, [(RATE, SET, "5")]))
        done = await kit.replace((T, {REPLICAS: "0:1", THEIRS: "60000"}), version=version)
        assert done == [(T, NONE, None)]
        assert kit.asked() == [(T, {THEIRS: "60000"})]
        assert kit.configs == {"topic t": {REPLICAS: "0:1"}, "topic u": {RATE: "5"}}
        assert await kit.replace((T, {}), version=version) == [(T, NONE, None)]
        assert kit.asked() == [(T, {})]
        assert kit.configs == {"topic u": {RATE: "5"}}

    async def test_ours_need_not_be_named_where_there_are_none(self) -> None:
        kit = Kit()
        request = alter_request([(T, {THEIRS: "5"}), (BROKER_1, {"x": "y"})])
        await kit._alter(request)
        assert kit.broker.frames == [request_frame(request)]
        assert kit.log.records == []

    @every_alter
    async def test_what_kafka_would_refuse(self, version: int) -> None:
        kit = Kit()
        done = await kit.replace((T, {RATE: None}), (BROKER_1, {FLAG: "maybe"}), version=version)
        assert [code for _, code, _ in done] == [INVALID_REQUEST, INVALID_CONFIG]
        assert kit.broker.asked == []

    async def test_what_an_old_tool_has_read_it_may_write_back(self) -> None:
        """kafka-configs up to 3.9 does with brokers: no temporary value becomes a lasting one by it."""
        kit = Kit()
        resource = ConfigResource(TOPIC_RESOURCE, "t")
        kit.store._configs.layers.tools.set_temporary(resource, RATE, Temporary("5", 2_000_000))
        kit.store._configs.layers.refresh(resource, RATE, 0)
        assert await kit.replace((T, {RATE: "5", THEIRS: "1"})) == [(T, NONE, None)]
        assert kit.log.records == []

    async def test_refused_by_the_broker(self) -> None:
        kit = Kit(refuses={T: REFUSED})
        await kit.set((U, [(RATE, SET, "5")]))
        assert await kit.replace((T, {RATE: "5"}), (U, {})) == [(T, REFUSED, "because"), (U, NONE, None)]
        assert kit.configs == {}


class TestDescribing:
    @every_describe
    async def test_ours_are_beside_the_brokers(self, version: int) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, DEFAULT_RESOURCE): {RATE: "7", PART: "8"}})
        await kit.set((T, [(RATE, SET, "5"), (REPLICAS, SET, "0:1")]), (BROKER_1, [(FLAG, SET, "true")]))
        configs = await kit.shown(T, version=version)
        assert {name: shown.value for name, shown in configs.items()} == {
            THEIRS: "5",
            RATE: "5",
            ACTION: "throttle",
            "consumer.byte.rate.action": "throttle",
            PART: "8",
            REPLICAS: "0:1",
            "follower.replication.throttled.replicas": "",
        }
        if version >= 1:
            assert configs[RATE] == Shown("5", 1, (("5", 1), ("7", 3)))
            assert configs[PART] == Shown("8", 3, (("8", 3),))
            assert configs[REPLICAS] == Shown("0:1", 1, (("0:1", 1), ("", 5)))
            assert configs[ACTION] == Shown("throttle", 5, (("throttle", 5),))
            assert (await kit.shown(BROKER_1, FLAG, version=version))[FLAG].source == 2
            assert (await kit.shown(T, RATE, version=version, synonyms=False))[RATE].synonyms == ()

    async def test_types_and_documentation(self) -> None:
        kit = Kit()
        await kit.set((T, [(RATE, SET, "5")]), (BROKER_1, [(FLAG, SET, "true")]))
        for wanted in (True, False):
            asked = [(T, [RATE, REPLICAS, ACTION]), (BROKER_1, [FLAG])]
            answer = await kit.describe(describe_request(asked, documentation=wanted))
            configs = [config for result in answer.results for config in result.configs]
            types = {config.name: config.config_type for config in configs}
            assert types == {RATE: 5, REPLICAS: 7, ACTION: 2, FLAG: 1}
            assert all(bool(config.documentation) == wanted for config in configs if config.name != REPLICAS)
            assert not any(config.read_only or config.is_sensitive for config in configs)

    async def test_only_what_is_asked_for(self) -> None:
        kit = Kit()
        await kit.set((T, [(RATE, SET, "5")]))
        assert set(await kit.shown(T, THEIRS)) == {THEIRS}
        assert set(await kit.shown(T, THEIRS, RATE)) == {THEIRS, RATE}
        assert await kit.shown(T, PART) == {PART: Shown(None, 5)}, "no value, shown to who asks for it"
        assert PART not in await kit.shown(T)

    async def test_the_request_goes_on_as_it_came(self) -> None:
        kit = Kit()
        request = describe_request([(T, [RATE]), (LOGGER, None)])
        await kit.describe(request)
        assert kit.broker.frames == [request_frame(request)]

    async def test_the_default_topic_is_ours_alone(self) -> None:
        kit = Kit()
        await kit.set((DEFAULT_TOPIC, [(RATE, SET, "5")]))
        answer = await kit.describe(describe_request([(T, None), (DEFAULT_TOPIC, None), (U, None)]))
        shown = described(answer)
        assert list(shown) == [T, DEFAULT_TOPIC, U]
        assert [resource.resource_name for resource in kit.broker.asked[-1].resources] == ["t", "u"]
        assert shown[DEFAULT_TOPIC][RATE] == Shown("5", 1, (("5", 1),))  # type: ignore[index]
        assert shown[T][RATE] == Shown("5", 3, (("5", 3),))  # type: ignore[index]
        before = len(kit.broker.asked)
        assert RATE in await kit.shown(DEFAULT_TOPIC)
        assert len(kit.broker.asked) == before

    async def test_of_the_default_broker_only_what_is_set(self) -> None:
        kit = Kit()
        assert set(await kit.shown(DEFAULT_BROKER, FLAG, TOTAL)) == {FLAG, TOTAL}
        assert FLAG not in await kit.shown(DEFAULT_BROKER)
        await kit.set((DEFAULT_BROKER, [(FLAG, SET, "true")]))
        assert (await kit.shown(DEFAULT_BROKER))[FLAG] == Shown("true", 3, (("true", 3),))
        assert (await kit.shown(BROKER_1))[FLAG] == Shown("true", 3, (("true", 3), ("false", 5)))

    async def test_what_the_broker_refuses_is_not_shown(self) -> None:
        kit = Kit(refuses={T: REFUSED})
        await kit.set((U, [(RATE, SET, "5")]))
        assert described(await kit.describe(describe_request([(T, None)]))) == {T: REFUSED}

    async def test_other_resources_have_none_of_ours(self) -> None:
        assert set(await Kit().shown(LOGGER)) == {THEIRS, REPLICAS}

    async def test_nothing_asked_for(self) -> None:
        assert described(await Kit().describe(describe_request([]))) == {}


class TestGarbage:
    @pytest.mark.parametrize(
        "request_", [alter_request([(T, {RATE: "5"})]), incremental_request([(T, [(RATE, SET, "5")])])]
    )
    async def test_a_request_that_does_not_parse(self, request_: Any) -> None:
        apis = ResourceConfigs(ConfigsStore(memory_store({})[0]), CONFIG_RULES)
        with pytest.raises(Malformed):
            await apis.alter(intercepted(request_frame(request_)[:-3]), FakeBroker().broker())

    async def test_an_answer_that_does_not_parse(self) -> None:
        apis = ResourceConfigs(ConfigsStore(memory_store({})[0]), CONFIG_RULES)
        broker = FakeBroker().broker()

        async def ask(frame: bytes) -> bytes:
            return b"\0\0\0\1\0"

        broken = type(broker)(broker.cluster_id, broker.node_id, broker.counts, ask, broker.rights)
        with pytest.raises(RelayError, match="the answer to IncrementalAlterConfigs"):
            await apis.alter(intercepted(request_frame(incremental_request([(T, [])]))), broken)
        with pytest.raises(RelayError, match="the answer to DescribeConfigs"):
            await apis.describe(intercepted(request_frame(describe_request([(T, None)]))), broken)


async def test_what_is_passed_on_is_set_here_and_at_the_broker() -> None:
    kit = Kit(rules=PASSED_ON)
    assert await kit.set((T, [(RATE, SET, "7")])) == [(T, NONE, None)]
    assert kit.configs == {"topic t": {RATE: "7"}}
    assert kit.asked() == [(T, {RATE: "7"})]
