"""AlterConfigs and IncrementalAlterConfigs: quota configs, Kafka configs, and one response to both."""

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.configs.alter import HALF_DONE, AlterConfigs
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.messages.fields import MAX_MESSAGE_CHARACTERS
from proxy.admin.yielder import STEPS
from proxy.quota.config_rules import ConfigRules
from proxy.quota.limits.resources import TOPIC as TOPIC_RESOURCE
from proxy.quota.limits.resources import ConfigResource
from proxy.relay.close_reasons import BrokerUnreachable, RelayError
from proxy.store.quota_store import StoreUnavailable
from proxy.wire.errors import Malformed
from tests.support.admin.configs_broker import FakeBroker
from tests.support.admin.configs_kit import (
    ACTION,
    BROKER_1,
    DEFAULT_BROKER,
    DEFAULT_TOPIC,
    EXPIRES,
    FLAG,
    INVALID_CONFIG,
    INVALID_REQUEST,
    LOGGER,
    NONE,
    PART,
    RATE,
    REJECTED,
    REPLICAS,
    THEIRS,
    TOTAL,
    WALL_MS,
    Kit,
    T,
    U,
)
from tests.support.admin.rights import FixedRights
from tests.support.loop_turns import counted_turns
from tests.support.messages.configs import (
    APPEND,
    BROKER,
    DELETE,
    INCREMENTAL,
    SET,
    SUBTRACT,
    TOPIC,
    alter_request,
    incremental_request,
)
from tests.support.messages.kio_messages import request_frame, versions
from tests.support.messages.mutations import intercepted, topic_id
from tests.support.quotas.config_rules import CONFIG_RULES, FORWARDED, KIND, too_much
from tests.support.quotas.memory_store import memory_store
from tests.support.turn_lengths import turn_lengths

AWAY = "it is away; try again"

every_incremental = pytest.mark.parametrize("version", versions(INCREMENTAL))


class TestIncremental:
    @every_incremental
    async def test_quota_configs_are_stored_and_kafka_configs_forwarded(self, version: int) -> None:
        kit = Kit()
        ops: list[tuple[str, int, str | None]] = [
            (RATE, SET, " 05"),
            (THEIRS, SET, "60000"),
            (ACTION, SET, "reject"),
        ]
        done = await kit.set((T, ops), (BROKER_1, [(FLAG, SET, "TRUE")]), version=version)
        assert done == [(T, NONE, None), (BROKER_1, NONE, None)]
        assert kit.configs == {"topic t": {RATE: "5", ACTION: "reject"}, "broker 1": {FLAG: "true"}}
        assert kit.asked() == [(T, {THEIRS: "60000"}), (BROKER_1, {})]
        assert [setting.topic_id for _, setting in kit.log.records] == [topic_id("t").hex] * 2 + [None]

    async def test_request_without_quota_configs_is_forwarded_unchanged(self) -> None:
        kit = Kit()
        resources = [(T, [(THEIRS, SET, "5"), ("x", APPEND, "y")]), (LOGGER, [(RATE, SET, "y")])]
        request = incremental_request(resources, validate_only=True)
        frame = request_frame(request)
        await kit.alter(request)
        assert kit.broker.frames == [frame]
        assert kit.configs == {}

    @pytest.mark.parametrize("name", [RATE, THEIRS])
    async def test_nothing_changes_while_the_broker_cannot_be_reached(self, name: str) -> None:
        kit = Kit()

        def unreachable(_: Any) -> Any:
            raise BrokerUnreachable("broker 1 is unreachable")

        kit.broker.respond = unreachable
        done = await kit.set((T, [(name, SET, "5")]), (U, [(name, SET, "6")]))
        assert [(key, code) for key, code, _ in done] == [
            (T, ErrorCode.request_timed_out),
            (U, ErrorCode.request_timed_out),
        ]
        assert kit.configs == {}

    @every_incremental
    @pytest.mark.parametrize(("resource", "name"), [(T, RATE), (DEFAULT_TOPIC, "x" * 32_000)])
    async def test_error_that_quotes_a_long_text_is_cut(
        self, version: int, resource: tuple[int, str], name: str
    ) -> None:
        [(_, code, message)] = await Kit().set((resource, [(name, SET, "y" * 32_700)]), version=version)
        assert code == ErrorCode.invalid_config
        assert message is not None
        assert len(message) == MAX_MESSAGE_CHARACTERS

    async def test_delete_with_and_without_a_value(self) -> None:
        kit = Kit()
        await kit.set((T, [(RATE, SET, "5")]))
        assert await kit.set((T, [(RATE, DELETE, None), (PART, DELETE, "x")])) == [(T, NONE, None)]
        assert kit.configs == {}

    async def test_append_and_subtract(self) -> None:
        kit = Kit()
        assert await kit.set((T, [(REPLICAS, APPEND, "0:1, 1:2")])) == [(T, NONE, None)]
        await kit.set((T, [(REPLICAS, APPEND, "1:2,2:3")]))
        assert kit.configs == {"topic t": {REPLICAS: "0:1,1:2,2:3"}}
        await kit.set((T, [(REPLICAS, SUBTRACT, "0:1,2:3,7:7")]))
        assert kit.configs == {"topic t": {REPLICAS: "1:2"}}
        await kit.set((T, [(REPLICAS, SUBTRACT, "1:2")]))
        assert kit.configs == {"topic t": {REPLICAS: ""}}

    async def test_changes_of_a_list_at_the_same_time_do_not_undo_each_other(self) -> None:
        kit = Kit()
        await kit.set((T, [(REPLICAS, SET, "100:1")]))
        added = [kit.set((T, [(REPLICAS, APPEND, f"{number}:1"), (RATE, SET, "5")])) for number in range(10)]
        removed = kit.set((T, [(REPLICAS, SUBTRACT, "100:1")]))
        assert await asyncio.gather(*added, removed) == [[(T, NONE, None)]] * 11
        listed = kit.configs["topic t"][REPLICAS].split(",")
        assert sorted(listed) == [f"{number}:1" for number in range(10)]

    async def test_change_of_a_list_that_another_change_makes_invalid(self) -> None:
        kit = Kit()
        all_of_them, one = kit.set((T, [(REPLICAS, SET, "*")])), kit.set((T, [(REPLICAS, APPEND, "0:1")]))
        [first, [(_, code, message)]] = await asyncio.gather(all_of_them, one)
        assert first == [(T, NONE, None)]
        assert code == INVALID_CONFIG
        assert "must be the literal '*'" in (message or "")
        assert kit.configs == {"topic t": {REPLICAS: "*"}}

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
            ([(RATE, 9, "5")], INVALID_REQUEST, "operation type 9 for producer.byte.rate"),
        ],
    )
    async def test_invalid_config_rejects_the_whole_resource(
        self, version: int, ops: list[tuple[str, int, str | None]], code: ErrorCode, message: str
    ) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, "t"): {REPLICAS: "0:1"}})
        done = await kit.set((T, [(THEIRS, SET, "1"), *ops]), (U, [(RATE, SET, "6")]), version=version)
        [(first, first_code, said), second] = done
        assert (first, first_code) == (T, code)
        assert said is not None
        assert message in said
        assert second == (U, NONE, None)
        assert kit.asked() == [(U, {})], "a resource that is rejected is rejected whole"
        assert kit.configs == {"topic t": {REPLICAS: "0:1"}, "topic u": {RATE: "6"}}

    async def test_resource_rejected_by_the_broker_is_not_stored(self) -> None:
        kit = Kit(rejects={T: REJECTED})
        done = await kit.set((U, [(RATE, SET, "5")]), (T, [(RATE, SET, "5"), (THEIRS, SET, "5")]))
        assert done == [(U, NONE, None), (T, REJECTED, "because")]
        assert kit.configs == {"topic u": {RATE: "5"}}

    async def test_unauthorized_client_changes_nothing(self) -> None:
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

    async def test_who_owns_a_topic_does_not_change_its_limit(self) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, "t"): {RATE: "5"}})
        kit.broker.rights = FixedRights(may=False, as_judged=True)
        for name, operation, value in ((RATE, SET, "1000000"), (RATE, DELETE, None), (ACTION, SET, "reject")):
            [(_, code, _)] = await kit.set((T, [(name, operation, value)]))
            assert code == ErrorCode.topic_authorization_failed
        assert kit.configs == {"topic t": {RATE: "5"}}
        assert await kit.set((T, [(THEIRS, SET, "5")])) == [(T, NONE, None)]

    async def test_duplicate_resource_is_left_to_the_broker(self) -> None:
        kit = Kit(rejects={T: INVALID_REQUEST})
        done = await kit.set((T, [(RATE, SET, "5")]), (U, [(RATE, SET, "5")]), (T, [(THEIRS, SET, "5")]))
        assert done == [(T, INVALID_REQUEST, "because"), (U, NONE, None), (T, INVALID_REQUEST, "because")]
        assert kit.configs == {"topic u": {RATE: "5"}}

    async def test_default_topic_is_not_forwarded(self) -> None:
        kit = Kit()
        assert await kit.set((DEFAULT_TOPIC, [(RATE, SET, "5")])) == [(DEFAULT_TOPIC, NONE, None)]
        assert kit.broker.asked == []
        done = await kit.set((DEFAULT_TOPIC, [(THEIRS, SET, "5")]), (T, [(THEIRS, SET, "5")]))
        assert [code for _, code, _ in done] == [INVALID_CONFIG, NONE]
        assert THEIRS in str(done[0][2])
        done = await kit.set((DEFAULT_TOPIC, [(RATE, SET, "6")]), (DEFAULT_TOPIC, [(RATE, SET, "7")]))
        assert [code for _, code, _ in done] == [INVALID_REQUEST] * 2
        assert kit.configs == {"topic <default>": {RATE: "5"}}

    async def test_validate_only_changes_nothing(self) -> None:
        kit = Kit()
        done = await kit.set((T, [(RATE, SET, "5")]), (U, [(RATE, SET, "0")]), validate_only=True)
        assert [code for _, code, _ in done] == [NONE, INVALID_CONFIG]
        assert kit.broker.asked[-1].validate_only
        assert kit.log.records == []

    async def test_broker_names(self) -> None:
        kit = Kit(rejects={(BROKER, "x"): INVALID_REQUEST})
        done = await kit.set(
            (DEFAULT_BROKER, [(FLAG, SET, "true")]),
            ((BROKER, "01"), [(FLAG, SET, "true")]),
            ((BROKER, "x"), [(FLAG, SET, "true")]),
        )
        assert [code for _, code, _ in done] == [NONE, NONE, INVALID_REQUEST]
        assert kit.configs == {"broker <default>": {FLAG: "true"}, "broker 1": {FLAG: "true"}}

    async def test_conflicting_configs_are_rejected(self) -> None:
        kit = Kit()
        done = await kit.set(
            (DEFAULT_BROKER, [(TOTAL, SET, "10")]),
            (T, [(PART, SET, "6")]),
            (U, [(PART, SET, "5"), (THEIRS, SET, "1")]),
        )
        assert done == [
            (DEFAULT_BROKER, NONE, None),
            (T, NONE, None),
            (U, INVALID_CONFIG, too_much("t (6), u (5)", 11, 10)),
        ]
        assert kit.asked() == [(DEFAULT_BROKER, {}), (T, {})]
        assert (await kit.set((DEFAULT_BROKER, [(TOTAL, SET, "5")])))[0][1] == INVALID_CONFIG
        assert kit.configs == {"broker <default>": {TOTAL: "10"}, "topic t": {PART: "6"}}

    async def test_unavailable_store(self) -> None:
        kit = Kit(rejects={(TOPIC, "v"): REJECTED})
        kit.log.failure = StoreUnavailable(AWAY)
        done = await kit.set(
            (T, [(RATE, SET, "5")]),
            (U, [(RATE, SET, "5"), (THEIRS, SET, "5")]),
            ((TOPIC, "v"), [(RATE, SET, "5")]),
            (DEFAULT_TOPIC, [(RATE, SET, "5")]),
            (BROKER_1, [(THEIRS, SET, "5")]),
        )
        away = ErrorCode.request_timed_out
        assert [(resource, code) for resource, code, _ in done] == [
            (T, away),
            (U, away),
            ((TOPIC, "v"), REJECTED),
            (DEFAULT_TOPIC, away),
            (BROKER_1, NONE),
        ]
        assert [message for _, code, message in done if code == away] == [AWAY, HALF_DONE + AWAY, AWAY]
        assert kit.configs == {}

    async def test_without_a_store(self) -> None:
        kit = Kit({ConfigResource(TOPIC_RESOURCE, "t"): {RATE: "5"}})
        kit.store.log = None
        done = await kit.set(
            (T, [(RATE, SET, "6")]), (U, [(THEIRS, SET, "6")]), (DEFAULT_TOPIC, [(RATE, DELETE, "")])
        )
        assert [code for _, code, _ in done] == [ErrorCode.policy_violation, NONE, NONE]
        assert "quotas.store" in str(done[0][2])
        assert kit.asked() == [(U, {THEIRS: "6"})]
        assert await kit.set((T, [(RATE, SET, "5")])) == [(T, NONE, None)], "it is so"
        assert await kit.replace((T, {THEIRS: "5"})) == [(T, NONE, None)], "nothing of the file's is erased"

    async def test_temporary_configs(self) -> None:
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
    async def test_invalid_expiry(self, ops: list[tuple[str, int, str | None]], code: ErrorCode) -> None:
        kit = Kit()
        [(_, rejected, message)] = await kit.set((T, ops))
        assert rejected == code
        assert EXPIRES in str(message)
        [(_, rejected, _)] = await kit.replace((T, {RATE: "5", EXPIRES: str(WALL_MS + 100)}))
        assert rejected == INVALID_CONFIG
        assert kit.log.records == []

    async def test_configs_that_brokers_enforce_too(self) -> None:
        kit = Kit(rules=ConfigRules([KIND], forwarded=frozenset([REPLICAS]), unenforced=frozenset([FLAG])))
        done = await kit.set((T, [(REPLICAS, SET, "*"), (RATE, SET, "5")]), (BROKER_1, [(FLAG, SET, "true")]))
        assert [code for _, code, _ in done] == [NONE, INVALID_CONFIG]
        assert FLAG in str(done[1][2])
        assert kit.asked() == [(T, {REPLICAS: "*"})]
        assert kit.configs == {"topic t": {REPLICAS: "*", RATE: "5"}}
        until = (EXPIRES, SET, str(WALL_MS + 100))
        done = await kit.set((U, [(REPLICAS, SET, "*"), until]), (BROKER_1, [(FLAG, DELETE, None)]))
        assert [code for _, code, _ in done] == [INVALID_CONFIG, NONE]
        assert REPLICAS in str(done[0][2])

    async def test_request_without_resources(self) -> None:
        assert await Kit().set() == []


class TestMalformed:
    @pytest.mark.parametrize(
        "request_", [alter_request([(T, {RATE: "5"})]), incremental_request([(T, [(RATE, SET, "5")])])]
    )
    async def test_malformed_request(self, request_: Any) -> None:
        api = AlterConfigs(ConfigsStore(memory_store({})[0]), CONFIG_RULES)
        with pytest.raises(Malformed):
            await api.answer(intercepted(request_frame(request_)[:-3]), FakeBroker().broker())

    async def test_malformed_response(self) -> None:
        api = AlterConfigs(ConfigsStore(memory_store({})[0]), CONFIG_RULES)
        broker = FakeBroker().broker()

        async def ask(frame: bytes) -> bytes:
            return b"\0\0\0\1\0"

        broken = type(broker)(broker.cluster_id, broker.node_id, broker.counts, ask, broker.rights)
        with pytest.raises(RelayError, match="IncrementalAlterConfigs"):
            await api.answer(intercepted(request_frame(incremental_request([(T, [])]))), broken)


async def test_forwarded_configs_are_set_here_and_at_the_broker() -> None:
    kit = Kit(rules=FORWARDED)
    assert await kit.set((T, [(RATE, SET, "7")])) == [(T, NONE, None)]
    assert kit.configs == {"topic t": {RATE: "7"}}
    assert kit.asked() == [(T, {RATE: "7"})]


async def test_each_step_of_very_many_resources_gives_way() -> None:
    """Reading the request, planning and checking each resource, forwarding, and reading the response."""
    kit = Kit()
    resources: list[tuple[tuple[int, str], list[tuple[str, int, str | None]]]] = [
        ((TOPIC, f"t{number}"), [(RATE, SET, "7")]) for number in range(4 * STEPS)
    ]
    async with counted_turns() as turns:
        done = await kit.set(*resources)
    assert len(done) == len(resources)
    assert turns.count >= 6 * 4


async def test_no_turn_is_longer_if_there_are_more_resources() -> None:
    """Not only the steps give way, but also what is done with all resources before and after them."""
    async with turn_lengths() as turns:
        await Kit().set(*[((TOPIC, f"t{number}"), []) for number in range(4000)])
    assert 0 < turns.longest < 40_000
