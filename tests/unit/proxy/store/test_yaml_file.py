"""Quotas in YAML: entities, and values as the kinds of quota take them."""

from datetime import UTC, date, datetime

import pytest

from proxy.errors import SettingsError
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.store.layers import Temporary
from proxy.store.yaml_file import read_clients
from tests.support.process.settings import QUOTA_KEYS

AT = ("quotas", "clients")


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
def test_an_entry_that_expires_stands_beside_one_that_does_not(expires: object) -> None:
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
    ("entry", "expected"),
    [
        ({"producer_byte_rate": 1}, "quotas.clients[0].entity: has to be given"),
        (
            {"entity": "alice"},
            "quotas.clients[0].entity: expected a mapping of user, client-id or both, or of ip, got 'alice'",
        ),
        (
            {"entity": {"user": 7}},
            "quotas.clients[0].entity.user: expected text, got 7; put the name in quotes",
        ),
        ({"entity": {"usr": "a"}}, "quotas.clients[0].entity.usr: unknown key; did you mean user?"),
        (
            {"entity": {}},
            "quotas.clients[0].entity: the entity is empty; it has user, client-id or both, or ip alone",
        ),
        (
            {"entity": {"user": "a", "ip": "10.0.0.1"}},
            "quotas.clients[0].entity: the entity has ip and user; "
            "it has user, client-id or both, or ip alone",
        ),
        (
            {"entity": {"ip": "10.0.0.1/8"}, "connection_creation_rate": 1},
            "quotas.clients[0].entity: ip: '10.0.0.1/8' has bits beyond its length; "
            "the network is 10.0.0.0/8; it takes an address, a network such as 10.0.0.0/8, "
            "or <default> for Kafka's default entity",
        ),
        (
            {"entity": {"ip": "10.0.0.1"}, "producer_byte_rate": 1},
            "quotas.clients[0].producer_byte_rate: producer_byte_rate is a quota of users and client ids; "
            "ip 10.0.0.1 cannot have it",
        ),
        (
            {"entity": {"user": "a"}, "producer_byte_rate": 1, "expires": "tomorrow"},
            "quotas.clients[0].expires: expected a time such as 2030-12-31T23:00:00Z, got 'tomorrow'",
        ),
        (
            {"entity": {"user": "a"}, "producer_byte_rate": 1, "expires": 7},
            "quotas.clients[0].expires: expected a time such as 2030-12-31T23:00:00Z, got 7",
        ),
        (
            {"entity": {"user": "a"}, "producer_byte_rate": 1, "expires": date(2030, 12, 31)},
            "quotas.clients[0].expires: 2030-12-31 has no time zone; write it as 2030-12-31T23:00:00Z",
        ),
        (
            {"entity": {"user": "a"}, "producer_byte_rate": 1, "expires": "2030-12-31T23:00:00"},
            "quotas.clients[0].expires: 2030-12-31 23:00:00 has no time zone; "
            "write it as 2030-12-31T23:00:00Z",
        ),
        (
            {"entity": {"user": "a"}, "producer_byterate": 1},
            "quotas.clients[0].producer_byterate: unknown key; did you mean producer_byte_rate?",
        ),
    ],
)
def test_rejections_name_the_key(entry: dict[str, object], expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_clients([entry], QUOTA_KEYS, AT)
    assert str(caught.value) == expected


@pytest.mark.parametrize("value", [0, -1, 1.5, "1048576", True, None, float("inf"), 2**63 + 2**40])
def test_values_are_checked_by_the_quota_key(value: object) -> None:
    with pytest.raises(SettingsError, match=r"^quotas\.clients\[0\]\.producer_byte_rate: "):
        read_clients([{"entity": {"user": "a"}, "producer_byte_rate": value}], QUOTA_KEYS, AT)


def test_an_entity_has_one_entry() -> None:
    entry: dict[str, object] = {"entity": {"user": "a"}, "producer_byte_rate": 1}
    with pytest.raises(SettingsError) as caught:
        read_clients([entry, {"entity": {"client-id": "a"}, "producer_byte_rate": 1}, entry], QUOTA_KEYS, AT)
    assert str(caught.value) == (
        "quotas.clients[2].entity: user a has an entry already, quotas.clients[0]; put its quotas together"
    )


def test_an_entity_has_one_entry_that_expires() -> None:
    entry: dict[str, object] = {"entity": {"user": "a"}, "producer_byte_rate": 1}
    expiring = {**entry, "expires": "2030-12-31T23:00:00Z"}
    with pytest.raises(SettingsError) as caught:
        read_clients([entry, expiring, expiring], QUOTA_KEYS, AT)
    assert str(caught.value) == (
        "quotas.clients[2].entity: user a has an entry already, quotas.clients[1]; put its quotas together"
    )
