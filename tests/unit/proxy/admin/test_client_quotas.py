"""AlterClientQuotas: Kafka's checks and error codes, and temporary quotas."""

import struct
import time

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.messages.client_quotas import BACK_TO_FILE, EXPIRES_AT_MS
from proxy.admin.messages.fields import MAX_CHANGES
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.relay.intercepted import Intercepted
from proxy.store.quota_records import Place
from proxy.store.quota_store import StoreUnavailable
from proxy.wire.api_keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from tests.support.admin.client_quotas_kit import ADMIN, KEYS, RATE, ClientQuotasKit, Ops, Parts
from tests.support.admin.rights import FixedRights, UnknownRights
from tests.support.messages.client_quotas import ANY, EXACT
from tests.support.messages.kio_messages import framed, read_frame, response_type
from tests.support.messages.mutations import ADDRESS, intercepted
from tests.support.quotas.memory_store import file_of

SOON = time.time_ns() // 1_000_000 + 3_600_000
REMOVE = None
INVALID = ErrorCode.invalid_request


@pytest.fixture(params=[0, 1], ids=["v0", "v1"])
def kit(request: pytest.FixtureRequest) -> ClientQuotasKit:
    return ClientQuotasKit(request.param)


@pytest.mark.parametrize(
    ("parts", "entity"),
    [
        ([("user", "alice")], QuotaEntity("alice", None)),
        ([("user", None)], QuotaEntity(DEFAULT, None)),
        ([("user", "<default>")], QuotaEntity("<default>", None)),
        ([("client-id", "c")], QuotaEntity(None, "c")),
        ([("client-id", None), ("user", "alice")], QuotaEntity("alice", DEFAULT)),
        ([("user", "a"), ("client-id", "c")], QuotaEntity("a", "c")),
    ],
)
async def test_alter_and_describe(kit: ClientQuotasKit, parts: Parts, entity: QuotaEntity) -> None:
    [result] = await kit.alter((parts, [(RATE, 1024.0)]))
    assert result.error_code == ErrorCode.none
    assert result.error_message is None
    assert [(part.entity_type, part.entity_name) for part in result.entity] == list(parts), "echoed exactly"
    assert kit.store.effective == {entity: {RATE: 1024.0}}
    [shown] = (await kit.described()).items()
    assert dict(shown[0]) == dict(parts)
    assert shown[1] == {RATE: 1024.0}
    [(_, setting)] = kit.log.records
    assert (setting.by, setting.client_id, setting.origin) == (ADMIN, "client", ADDRESS)


async def test_nothing_changes_while_the_broker_cannot_be_reached(kit: ClientQuotasKit) -> None:
    """The client tries again; the connection goes on."""
    kit.rights = UnknownRights()
    results = await kit.alter(([("user", "a")], [(RATE, 1.0)]), ([("user", "b")], [(RATE, 2.0)]))
    assert [result.error_code for result in results] == [ErrorCode.request_timed_out] * 2
    assert kit.log.records == []


@pytest.mark.parametrize("name", ["127.0.0.1", "::1", "localhost", None, "10.0.0.0/8"])
async def test_ip_entities(kit: ClientQuotasKit, name: str | None) -> None:
    [result] = await kit.alter(([("ip", name)], [("connection_creation_rate", 3.0)]))
    assert (result.error_code, result.error_message) == (ErrorCode.none, None)
    assert result.entity[0].entity_name == name
    assert await kit.described(("ip", 2, None)) == {(("ip", name),): {"connection_creation_rate": 3.0}}


@pytest.mark.parametrize(
    ("parts", "ops", "named"),
    [
        ([], [(RATE, 1.0)], "empty"),
        ([("group", "g")], [(RATE, 1.0)], "entity type: group;"),
        ([("", "g")], [(RATE, 1.0)], "entity type: ;"),
        ([("user", "")], [(RATE, 1.0)], "Empty user"),
        ([("client-id", "")], [], "Empty client-id"),
        ([("ip", "127.0.0.1"), ("user", "a")], [("connection_creation_rate", 1.0)], "combination"),
        ([("client-id", "c"), ("ip", None)], [], "combination"),
        ([("ip", "no such host")], [("connection_creation_rate", 1.0)], "no such host"),
        ([("ip", "300.1.1.1/8")], [], "300.1.1.1/8"),
        ([("ip", "10.0.0.1/8")], [], "the network is 10.0.0.0/8"),
        ([("ip", "127.0.0.1")], [(RATE, 1.0)], "producer_byte_rate is a quota of users and client ids"),
        (
            [("user", "a")],
            [("connection_creation_rate", 1.0)],
            "connection_creation_rate is a quota of an ip",
        ),
        (
            [("user", "a")],
            [("producer_byterate", 1.0)],
            "producer_byterate; did you mean producer_byte_rate?",
        ),
        ([("user", "a")], [("", 1.0)], "configuration key ;"),
        ([("user", "a")], [(RATE, 0.0)], "producer_byte_rate is 0.0"),
        ([("user", "a")], [(RATE, -1.0)], "producer_byte_rate is -1.0"),
        ([("user", "a")], [(RATE, float("nan"))], "producer_byte_rate is nan"),
        ([("user", "a")], [(RATE, 1.5)], "producer_byte_rate is 1.5"),
        ([("user", "a")], [(RATE, 1e19)], "producer_byte_rate is 1e+19"),
        (
            [("ip", None)],
            [("connection_creation_rate", 2.0**31)],
            "connection_creation_rate is 2147483648.0",
        ),
        ([("user", "a")], [(RATE, 1.0), (RATE, 2.0)], "producer_byte_rate appears more than once"),
        ([("user", "a")], [("consumer_byte_rate", 1.0), (RATE, 0.0)], "producer_byte_rate is 0.0"),
        ([("user", "a")], [(EXPIRES_AT_MS, SOON)], "expires_at_ms needs a quota"),
        (
            [("user", "a")],
            [(RATE, 1.0), (EXPIRES_AT_MS, 1000.0)],
            "expires_at_ms is 1000.000000",
        ),
        ([("user", "a")], [(RATE, 1.0), (EXPIRES_AT_MS, SOON + 0.5)], "expires_at_ms is "),
        ([("user", "a")], [(RATE, 1.0), (EXPIRES_AT_MS, float("inf"))], "expires_at_ms is inf"),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
async def test_invalid_entries(
    kit: ClientQuotasKit, parts: Parts, ops: Ops, named: str, validate_only: bool
) -> None:
    """Each is rejected with 42, whole, and the entity comes back as it was sent."""
    [result] = await kit.alter((parts, ops), validate_only=validate_only)
    assert result.error_code == INVALID
    assert named in result.error_message
    assert [(part.entity_type, part.entity_name) for part in result.entity] == list(parts)
    assert kit.log.records == []


@pytest.mark.parametrize(
    ("parts", "ops"),
    [
        ([("user", "a")], []),
        ([("user", "a")], [(RATE, REMOVE)]),
        ([("user", "a")], [("no such quota", REMOVE)]),
        ([("user", "a")], [("connection_creation_rate", REMOVE)]),
        ([("user", "a")], [(EXPIRES_AT_MS, REMOVE)]),
    ],
)
async def test_entry_without_effect(kit: ClientQuotasKit, parts: Parts, ops: Ops) -> None:
    [result] = await kit.alter((parts, ops))
    assert result.error_code == ErrorCode.none
    assert kit.log.records == []


@pytest.mark.parametrize("value", [1.0, 1024.0000001, 2.0**53])
async def test_valid_values(kit: ClientQuotasKit, value: float) -> None:
    assert [result.error_code for result in await kit.alter(([("user", "a")], [(RATE, value)]))] == [0]
    assert kit.store.effective == {QuotaEntity("a", None): {RATE: value}}


async def test_fractions_of_a_percentage(kit: ClientQuotasKit) -> None:
    await kit.alter(([("user", "a")], [("request_percentage", 0.5)]))
    assert kit.store.effective == {QuotaEntity("a", None): {"request_percentage": 0.5}}


async def test_entries_are_checked_one_by_one(kit: ClientQuotasKit) -> None:
    results = await kit.alter(
        ([("user", "a")], [(RATE, 1.0)]), ([("user", "b")], [(RATE, -1.0)]), ([("user", "c")], [(RATE, 3.0)])
    )
    assert [result.error_code for result in results] == [0, INVALID, 0]
    assert set(kit.store.effective) == {QuotaEntity("a", None), QuotaEntity("c", None)}


async def test_duplicate_entity(kit: ClientQuotasKit) -> None:
    """As in Kafka: the first is done, and the one result says 42."""
    results = await kit.alter(([("user", "a")], [(RATE, 1.0)]), ([("user", "a")], [(RATE, 2.0)]))
    assert [result.error_code for result in results] == [INVALID]
    assert kit.store.effective == {QuotaEntity("a", None): {RATE: 1.0}}


async def test_duplicate_entity_with_its_parts_in_another_order(kit: ClientQuotasKit) -> None:
    parts = [("user", "a"), ("client-id", "c")]
    results = await kit.alter((parts, [(RATE, 1.0)]), (parts[::-1], [(RATE, 2.0)]))
    assert [result.error_code for result in results] == [INVALID]
    assert kit.store.effective == {QuotaEntity("a", "c"): {RATE: 1.0}}


async def test_the_last_name_of_a_type_counts(kit: ClientQuotasKit) -> None:
    [result] = await kit.alter(([("user", "a"), ("user", "b")], [(RATE, 1.0)]))
    assert result.error_code == ErrorCode.none
    assert [(part.entity_type, part.entity_name) for part in result.entity] == [("user", "b")]
    assert set(kit.store.effective) == {QuotaEntity("b", None)}


async def test_validate_only_changes_nothing(kit: ClientQuotasKit) -> None:
    [result] = await kit.alter(([("user", "a")], [(RATE, 1.0)]), validate_only=True)
    assert result.error_code == ErrorCode.none
    assert kit.store.effective == {}


async def test_unchanged_value_writes_nothing(kit: ClientQuotasKit) -> None:
    for _ in range(2):
        await kit.alter(([("user", "a")], [(RATE, 1.0)]))
    assert len(kit.log.records) == 1


async def test_more_changes_than_kafka_makes_at_once_are_rejected(kit: ClientQuotasKit) -> None:
    many = [(f"key-{number}", 1.0) for number in range(MAX_CHANGES)]
    results = await kit.alter(([("user", "a")], many), ([("user", "b")], [(RATE, 1.0)]))
    assert [result.error_code for result in results] == [ErrorCode.policy_violation] * 2
    assert kit.store.effective == {}


@pytest.mark.parametrize("kind", ["user", "lasting"])
async def test_a_filter_with_very_many_components_is_rejected(kit: ClientQuotasKit, kind: str) -> None:
    response = await kit.describe(*[(kind, ANY, None)] * 10_000)
    assert response.error_code == INVALID
    assert kind in response.error_message


async def test_removal(kit: ClientQuotasKit) -> None:
    await kit.alter(([("user", "a")], [(RATE, 1.0), ("consumer_byte_rate", 2.0)]))
    await kit.alter(([("user", "a")], [(RATE, REMOVE)]))
    assert kit.store.effective == {QuotaEntity("a", None): {"consumer_byte_rate": 2.0}}


def raw(api_key: int, body: bytes) -> Intercepted:
    """A request of version 1 that kio cannot write."""
    payload = struct.pack(">hhih", api_key, 1, 5, 0) + b"\0" + body
    return intercepted(framed(payload))


async def test_null_in_fields_that_are_not_nullable() -> None:
    """Kafka 4.3 closes the connection; here they are mistakes like others (v1: type, name, key are null)."""
    kit = ClientQuotasKit()
    apis = ClientQuotas(kit.store, KEYS)
    null_type = bytes([2, 2, 0, 0, 0, 1, 0, 0, 0])
    frame = await apis.alter(raw(ALTER_CLIENT_QUOTAS, null_type), FixedRights())
    [result] = read_frame(response_type(ALTER_CLIENT_QUOTAS, 1), frame).entries
    assert result.error_code == INVALID
    assert "null" in result.error_message
    null_key = (
        bytes([2, 2, 5]) + b"user" + bytes([2]) + b"a" + bytes([0, 2, 0]) + bytes(8) + bytes([0, 0, 0, 0, 0])
    )
    frame = await apis.alter(raw(ALTER_CLIENT_QUOTAS, null_key), FixedRights())
    [result] = read_frame(response_type(ALTER_CLIENT_QUOTAS, 1), frame).entries
    assert result.error_code == INVALID
    assert "null" in result.error_message
    frame = await apis.describe(raw(DESCRIBE_CLIENT_QUOTAS, bytes([2, 0, 2, 0, 0, 0, 0])), FixedRights())
    assert read_frame(response_type(DESCRIBE_CLIENT_QUOTAS, 1), frame).error_code == INVALID


async def test_unavailable_store(kit: ClientQuotasKit) -> None:
    kit.log.failure = StoreUnavailable("the topic is away")
    results = await kit.alter(([("user", "a")], [(RATE, 1.0)]), ([("user", "b")], [(RATE, -1.0)]))
    assert [result.error_code for result in results] == [ErrorCode.request_timed_out, INVALID]
    assert results[0].error_message == "the topic is away"
    assert ErrorCode.request_timed_out.retriable
    assert kit.store.effective == {}
    assert [
        result.error_code for result in await kit.alter(([("user", "a")], [(RATE, 1.0)]), validate_only=True)
    ] == [0]


async def test_without_a_store(kit: ClientQuotasKit) -> None:
    kit.store.log = None
    [result] = await kit.alter(([("user", "a")], [(RATE, 1.0)]))
    assert result.error_code == ErrorCode.policy_violation
    assert "quotas.store: none" in result.error_message


class TestTemporary:
    async def test_temporary_quota_ends(self, kit: ClientQuotasKit) -> None:
        until = kit.wall.ms + 60_000
        await kit.alter(([("user", "a")], [(RATE, 9.0)]))
        [result] = await kit.alter(([("user", "a")], [(RATE, 1.0), (EXPIRES_AT_MS, float(until))]))
        assert result.error_code == ErrorCode.none
        assert await kit.described() == {(("user", "a"),): {RATE: 1.0}}
        [result] = await kit.alter(([("user", "a")], [(EXPIRES_AT_MS, REMOVE)]))
        assert result.error_code == ErrorCode.none
        assert await kit.described() == {(("user", "a"),): {RATE: 9.0}}
        kit.store.close()

    async def test_lasting_quotas(self, kit: ClientQuotasKit) -> None:
        until = float(kit.wall.ms + 60_000)
        await kit.alter(([("user", "a")], [(RATE, 9.0)]), ([("user", "b")], [(RATE, 7.0)]))
        await kit.alter(([("user", "a")], [(RATE, 1.0), (EXPIRES_AT_MS, until)]))
        await kit.alter(([("user", "guest")], [(RATE, 2.0), (EXPIRES_AT_MS, until)]))
        lasting = ("lasting", ANY, None)
        a, b = {(("user", "a"),): {RATE: 9.0}}, {(("user", "b"),): {RATE: 7.0}}
        assert await kit.described(lasting) == {**a, **b}
        assert await kit.described(("user", EXACT, "a"), lasting, strict=True) == a
        assert await kit.described(lasting, ("user", EXACT, "guest")) == {}
        await kit.alter(([("user", "b")], [(RATE, REMOVE)]))
        assert await kit.described(lasting) == a
        response = await kit.describe(("lasting", EXACT, "x"))
        assert response.error_code == ErrorCode.unsupported_version
        kit.store.close()

    async def test_quota_is_removed_for_a_time(self, kit: ClientQuotasKit) -> None:
        await kit.alter(([("user", "a")], [(RATE, 9.0)]))
        await kit.alter(([("user", "a")], [(RATE, REMOVE), (EXPIRES_AT_MS, float(SOON))]))
        assert kit.store.effective == {}
        assert kit.log.records[-1][0] == Place(QuotaEntity("a", None), RATE, True)
        kit.store.close()


async def test_back_to_file(kit: ClientQuotasKit) -> None:
    """The file's value, which tools have removed or changed, takes effect again."""
    alice = QuotaEntity("alice", None)
    await kit.store.use_file(file_of({alice: {RATE: 5.0, "consumer_byte_rate": 6.0}}))
    of_alice: Parts = [("user", "alice")]
    await kit.alter((of_alice, [(RATE, REMOVE), ("consumer_byte_rate", 9.0), ("request_percentage", 7.0)]))
    assert await kit.described(("lasting", EXACT, "file")) == {
        (("user", "alice"),): {RATE: 5.0, "consumer_byte_rate": 6.0}
    }
    [result] = await kit.alter((of_alice, [(RATE, REMOVE), (BACK_TO_FILE, 1.0)]))
    assert result.error_code == ErrorCode.none
    expected = {RATE: 5.0, "consumer_byte_rate": 9.0, "request_percentage": 7.0}
    assert kit.store.effective == {alice: expected}
    await kit.alter((of_alice, [(BACK_TO_FILE, 1.0)]))
    assert kit.store.effective == {alice: {RATE: 5.0, "consumer_byte_rate": 6.0}}
    [result] = await kit.alter((of_alice, [(RATE, 1.0), (BACK_TO_FILE, 1.0), (EXPIRES_AT_MS, float(SOON))]))
    assert result.error_code == INVALID
    [result] = await kit.alter((of_alice, [("producer_byte_rat", REMOVE), (BACK_TO_FILE, 1.0)]))
    assert result.error_code == INVALID
