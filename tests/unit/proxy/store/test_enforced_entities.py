import pytest

from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.store.enforced_entities import EnforcedEntities

RATE = "connection_creation_rate"


def ip(name: str) -> QuotaEntity:
    return QuotaEntity(None, None, name)


@pytest.mark.parametrize(
    ("entity", "enforced"),
    [
        (QuotaEntity("::ffff:10.0.0.1", "c"), QuotaEntity("::ffff:10.0.0.1", "c")),
        (ip(DEFAULT), ip(DEFAULT)),
        (ip("10.0.0.1"), ip("10.0.0.1")),
        (ip("::ffff:10.0.0.1"), ip("10.0.0.1")),
        (ip("::ffff:10.0.0.0/104"), ip("10.0.0.0/8")),
        (ip("unknown.example"), ip("unknown.example")),
    ],
)
def test_entity_has_one_spelling(entity: QuotaEntity, enforced: QuotaEntity) -> None:
    assert EnforcedEntities().of(entity) == enforced


def test_lowest_value_of_all_spellings_applies() -> None:
    entities = EnforcedEntities()
    quotas = {
        ip("10.0.0.1"): {RATE: 5.0},
        ip("::ffff:10.0.0.1"): {RATE: 3.0, "x": 9.0},
        ip(DEFAULT): {RATE: 1.0},
    }
    expected = {ip("10.0.0.1"): {RATE: 3.0, "x": 9.0}, ip(DEFAULT): {RATE: 1.0}}
    for order in (quotas, dict(reversed(quotas.items()))):
        assert entities.all(order) == expected
        assert entities.value(ip("10.0.0.1"), RATE, order) == 3
        assert entities.value(ip("10.0.0.1"), "x", order) == 9
        assert entities.value(ip("10.0.0.2"), RATE, order) is None


def test_host_name_is_enforced_as_its_address() -> None:
    entities = EnforcedEntities()
    host = ip("a.example")
    assert entities.set_address(host, "10.0.0.1") == host
    assert entities.of(host) == ip("10.0.0.1")
    assert entities.set_address(host, "10.0.0.1") is None
    quotas = {host: {RATE: 5.0}}
    assert entities.set_address(host, "10.0.0.2") == ip("10.0.0.1")
    assert entities.all(quotas) == {ip("10.0.0.2"): {RATE: 5.0}}
    assert entities.value(ip("10.0.0.1"), RATE, quotas) is None
