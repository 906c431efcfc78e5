"""Quotas in YAML: entities, and values as the kinds of quota take them."""

from datetime import UTC, date, datetime

import pytest

from proxy.errors import SettingsError
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.store.layers import ClientLayer, Layers, Temporary
from proxy.store.yaml_file import read_clients, read_scopes
from tests.support.process.settings import QUOTA_KEYS

AT = ("quotas", "clients")


def test_entities_with_equal_quotas_share_them_and_change_alone() -> None:
    entries = [
        {"entity": {"user": f"user-{number}"}, "producer_byte_rate": number % 2 + 1} for number in range(4)
    ]
    layer = read_clients(entries, QUOTA_KEYS, AT)
    users = [QuotaEntity(f"user-{number}", None) for number in range(4)]
    assert layer.lasting[users[0]] is layer.lasting[users[2]]
    layers: Layers[QuotaEntity, float] = Layers()
    tools = ClientLayer()
    tools.set_lasting(users[0], "producer_byte_rate", 7.0)
    tools.set_lasting(users[1], "producer_byte_rate", None)
    layers.use(layer, tools, 0)
    tools.set_lasting(users[2], "consumer_byte_rate", 5.0)
    assert layers.refresh(users[2], "consumer_byte_rate", 0)
    assert layers.effective == {
        users[0]: {"producer_byte_rate": 7.0},
        users[2]: {"producer_byte_rate": 1.0, "consumer_byte_rate": 5.0},
        users[3]: {"producer_byte_rate": 2.0},
    }
    assert [layer.lasting[user]["producer_byte_rate"] for user in users] == [1.0, 2.0, 1.0, 2.0]


def test_entities_and_values() -> None:
    quotas = read_clients(
        [
            {
                "entity": {"user": "alice", "client-id": "<default>"},
                "producer_byte_rate": 1,
                "consumer_byte_rate": 2,
            },
            {"entity": {"user": "<default>"}, "consumer_byte_rate": 3},
            {"entity": {"ip": "10.0.0.0/8"}, "connection_creation_rate": 4},
        ],
        QUOTA_KEYS,
        AT,
    )
    assert quotas.temporary == {}
    assert quotas.lasting == {
        QuotaEntity("alice", DEFAULT): {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0},
        QuotaEntity(DEFAULT, None): {"consumer_byte_rate": 3.0},
        QuotaEntity(None, None, "10.0.0.0/8"): {"connection_creation_rate": 4.0},
    }


@pytest.mark.parametrize(
    "expires",
    [
        "2030-12-31T00:00:00+01:00",
        "2030-12-30T23:00:00Z",
        datetime(2030, 12, 30, 23, tzinfo=UTC),
    ],
)
def test_entity_can_have_a_lasting_and_a_temporary_entry(expires: object) -> None:
    entity = {"user": "alice"}
    layer = read_clients(
        [
            {"entity": entity, "producer_byte_rate": 1},
            {"entity": entity, "producer_byte_rate": 2, "expires": expires},
        ],
        QUOTA_KEYS,
        AT,
    )
    alice = QuotaEntity("alice", None)
    assert layer.lasting == {alice: {"producer_byte_rate": 1.0}}
    assert layer.temporary == {alice: {"producer_byte_rate": Temporary(2.0, 1_924_902_000_000)}}


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"producer_byte_rate": 1}, ("entity",)),
        ({"entity": "alice"}, ("entity",)),
        ({"entity": {"user": 7}}, ("entity", "user")),
        ({"entity": {"usr": "a"}}, ("entity", "usr")),
        ({"entity": {}}, ("entity",)),
        ({"entity": {"user": "a", "ip": "10.0.0.1"}}, ("entity",)),
        ({"entity": {"ip": "10.0.0.1/8"}, "connection_creation_rate": 1}, ("entity",)),
        ({"entity": {"ip": "10.0.0.1"}, "producer_byte_rate": 1}, ("producer_byte_rate",)),
        ({"entity": {"user": "a"}}, ()),
        ({"entity": {"user": "a"}, "producer_byte_rate": 1, "expires": "tomorrow"}, ("expires",)),
        ({"entity": {"user": "a"}, "producer_byte_rate": 1, "expires": 7}, ("expires",)),
        ({"entity": {"user": "a"}, "producer_byte_rate": 1, "expires": date(2030, 12, 31)}, ("expires",)),
        (
            {"entity": {"user": "a"}, "producer_byte_rate": 1, "expires": "2030-12-31T23:00:00"},
            ("expires",),
        ),
        ({"entity": {"user": "a"}, "producer_byterate": 1}, ("producer_byterate",)),
    ],
)
def test_mistake_is_rejected_by_its_key(entry: dict[str, object], key: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError) as caught:
        read_clients([entry], QUOTA_KEYS, AT)
    assert caught.value.key == (*AT, 0, *key)


@pytest.mark.parametrize("value", [0, -1, 1.5, "1048576", True, None, float("inf"), 2**63 + 2**40])
def test_invalid_value_is_rejected_by_its_key(value: object) -> None:
    with pytest.raises(SettingsError) as caught:
        read_clients([{"entity": {"user": "a"}, "producer_byte_rate": value}], QUOTA_KEYS, AT)
    assert caught.value.key == (*AT, 0, "producer_byte_rate")


@pytest.mark.parametrize("expires", [{}, {"expires": "2030-12-31T23:00:00Z"}])
def test_entity_has_one_lasting_and_one_temporary_entry(expires: dict[str, object]) -> None:
    entry: dict[str, object] = {"entity": {"user": "a"}, "producer_byte_rate": 1}
    other: dict[str, object] = {"entity": {"client-id": "a"}, "producer_byte_rate": 1}
    with pytest.raises(SettingsError, match=r"quotas.clients\[1\]") as caught:
        read_clients([other, {**entry, **expires}, {**entry, **expires}], QUOTA_KEYS, AT)
    assert caught.value.key == (*AT, 2, "entity")


def test_scopes_are_those_of_entities() -> None:
    entries: list[dict[str, object]] = [
        {"entity": {"user": "a"}, "scope": "cluster", "producer_byte_rate": 1},
        {"entity": {"user": "a"}, "expires": "2030-12-30T23:00:00Z", "producer_byte_rate": 2},
        {"entity": {"user": "b"}, "scope": "broker"},
        {"entity": {"user": "c"}, "producer_byte_rate": 1},
    ]
    layer = read_clients(entries, QUOTA_KEYS, AT)
    assert layer.lasting == {
        QuotaEntity("a", None): {"producer_byte_rate": 1.0},
        QuotaEntity("c", None): {"producer_byte_rate": 1.0},
    }
    assert read_scopes(entries, AT) == {QuotaEntity("a", None): "cluster", QuotaEntity("b", None): "broker"}


def test_an_entity_has_one_valid_scope() -> None:
    for scopes in (["proxy"], [None], [["cluster"]], ["cluster", "broker"]):
        entries = [{"entity": {"user": "a"}, "scope": scope} for scope in scopes]
        with pytest.raises(SettingsError) as caught:
            read_scopes(entries, AT)
        assert caught.value.key == (*AT, len(scopes) - 1, "scope")


def test_a_number_with_a_unit_is_rejected_with_the_number_to_write() -> None:
    with pytest.raises(SettingsError, match="1048576"):
        read_clients([{"entity": {"user": "a"}, "producer_byte_rate": "1MB/s"}], QUOTA_KEYS, AT)
