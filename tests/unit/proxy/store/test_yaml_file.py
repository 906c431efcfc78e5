"""Quotas in YAML: entities, and values as the kinds of quota take them."""

import pytest

from proxy.errors import SettingsError
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.store.yaml_file import read_clients

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
        ],
        AT,
    )
    assert quotas == {
        QuotaEntity("alice", DEFAULT): {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0},
        QuotaEntity(DEFAULT, None): {"consumer_byte_rate": 3.0},
    }


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"producer_byte_rate": 1}, "quotas.clients[0].entity: has to be given"),
        (
            {"entity": "alice"},
            "quotas.clients[0].entity: expected a mapping of user, client-id or both, got 'alice'",
        ),
        (
            {"entity": {"user": 7}},
            "quotas.clients[0].entity.user: expected text, got 7; put the name in quotes",
        ),
        ({"entity": {"usr": "a"}}, "quotas.clients[0].entity.usr: unknown key; did you mean user?"),
        (
            {"entity": {"ip": "10.0.0.1"}},
            "quotas.clients[0].entity.ip: quotas of IP addresses is not in this version yet; "
            "remove the key, so that nothing looks enforced that is not",
        ),
        ({"entity": {}}, "quotas.clients[0].entity: the entity is empty; it has user, client-id or both"),
        (
            {"entity": {"user": "a"}},
            "quotas.clients[0]: has no quota; expected one of consumer_byte_rate, producer_byte_rate",
        ),
        (
            {"entity": {"user": "a"}, "producer_byterate": 1},
            "quotas.clients[0].producer_byterate: unknown key; did you mean producer_byte_rate?",
        ),
        (
            {"entity": {"user": "a"}, "request_percentage": 50},
            "quotas.clients[0].request_percentage: the request quota (KIP-124) is not in this version yet; "
            "remove the key, so that nothing looks enforced that is not",
        ),
    ],
)
def test_refusals_name_the_key(entry: dict[str, object], expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_clients([entry], AT)
    assert str(caught.value) == expected


@pytest.mark.parametrize("value", [0, -1, 1.5, "1048576", True, None, float("inf"), 2**63 + 2**40])
def test_values_are_checked_by_the_quota_key(value: object) -> None:
    with pytest.raises(SettingsError, match=r"^quotas\.clients\[0\]\.producer_byte_rate: "):
        read_clients([{"entity": {"user": "a"}, "producer_byte_rate": value}], AT)


def test_an_entity_has_one_entry() -> None:
    entry: dict[str, object] = {"entity": {"user": "a"}, "producer_byte_rate": 1}
    with pytest.raises(SettingsError) as caught:
        read_clients([entry, {"entity": {"client-id": "a"}, "producer_byte_rate": 1}, entry], AT)
    assert str(caught.value) == (
        "quotas.clients[2].entity: user a has an entry already, quotas.clients[0]; put its quotas together"
    )
