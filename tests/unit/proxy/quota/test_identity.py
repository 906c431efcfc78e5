import re

import pytest

from proxy.quota.identity import DEFAULT, QuotaEntity, limit_precedence, parse_entity, precedence

PARSED = [
    ({"user": "alice", "client-id": "billing"}, QuotaEntity("alice", "billing")),
    ({"user": "alice", "client-id": "<default>"}, QuotaEntity("alice", DEFAULT)),
    ({"user": "alice"}, QuotaEntity("alice", None)),
    ({"user": "<default>", "client-id": "billing"}, QuotaEntity(DEFAULT, "billing")),
    ({"user": "<default>", "client-id": "<default>"}, QuotaEntity(DEFAULT, DEFAULT)),
    ({"user": "<default>"}, QuotaEntity(DEFAULT, None)),
    ({"client-id": "billing"}, QuotaEntity(None, "billing")),
    ({"client-id": "<default>"}, QuotaEntity(None, DEFAULT)),
    ({"ip": "10.0.0.1"}, QuotaEntity(None, None, "10.0.0.1")),
    ({"ip": "2001:db8::1"}, QuotaEntity(None, None, "2001:db8::1")),
    ({"ip": "10.0.0.0/8"}, QuotaEntity(None, None, "10.0.0.0/8")),
    ({"ip": "<default>"}, QuotaEntity(None, None, DEFAULT)),
]


@pytest.mark.parametrize(("parts", "entity"), PARSED)
def test_an_entity_is_read_from_its_parts_and_gives_them_back(
    parts: dict[str, object], entity: QuotaEntity
) -> None:
    assert parse_entity(parts) == entity
    assert parse_entity(parts).parts() == parts


@pytest.mark.parametrize(
    ("parts", "cause"),
    [
        ({}, "empty"),
        ({"client_id": "c"}, "'client_id' is not part"),
        ({"user": ""}, "user is ''"),
        ({"user": None}, "user is None"),
        ({"client-id": 7}, "client-id is 7"),
        ({"ip": ""}, "ip is ''"),
        ({"ip": "10.0.0.1", "user": "u", "client-id": "c"}, "has ip and client-id and user"),
        ({"ip": "localhost"}, "ip: 'localhost'"),
        ({"ip": "10.0.0/8"}, "ip: '10.0.0/8'"),
        ({"ip": "10.0.0.1/8"}, "the network is 10.0.0.0/8"),
    ],
)
def test_an_error_says_which_part_of_an_entity_is_wrong(parts: dict[str, object], cause: str) -> None:
    with pytest.raises(ValueError, match=re.escape(cause)):
        parse_entity(parts)


@pytest.mark.parametrize(
    ("name", "ip"),
    [("2001:DB8:0::1", "2001:db8::1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("2001:DB8::/32", "2001:db8::/32")],
)
def test_an_address_has_one_spelling(name: str, ip: str) -> None:
    assert parse_entity({"ip": name}) == QuotaEntity(None, None, ip)


def test_entities_differ_in_every_part() -> None:
    entities = {entity for _, entity in PARSED}
    assert len(entities) == len(PARSED)
    assert QuotaEntity("alice", None) in entities
    assert QuotaEntity(None, "alice") not in entities
    assert QuotaEntity("alice", "billing") != QuotaEntity("alice", "shop")
    assert QuotaEntity("alice", "billing") != QuotaEntity("bob", "billing")
    assert QuotaEntity(None, None, "10.0.0.1") != QuotaEntity("10.0.0.1", None)


def test_entities_are_shown_by_part_and_name() -> None:
    assert str(QuotaEntity("alice", DEFAULT)) == "user alice, client-id <default>"
    assert str(QuotaEntity(None, None, "10.0.0.0/8")) == "ip 10.0.0.0/8"


def test_precedence_is_kafkas() -> None:
    assert precedence("alice", "billing") == [
        QuotaEntity("alice", "billing"),
        QuotaEntity("alice", DEFAULT),
        QuotaEntity("alice", None),
        QuotaEntity(DEFAULT, "billing"),
        QuotaEntity(DEFAULT, DEFAULT),
        QuotaEntity(DEFAULT, None),
        QuotaEntity(None, "billing"),
        QuotaEntity(None, DEFAULT),
    ]


@pytest.mark.parametrize(
    ("user", "client_id", "entities"),
    [
        ("u", "c", [("u", "c"), ("u", DEFAULT), (DEFAULT, "c"), (DEFAULT, DEFAULT)]),
        ("u", "", [("u", None), (DEFAULT, None)]),
        ("", "c", [(None, "c"), (None, DEFAULT)]),
        ("", "", []),
    ],
)
def test_a_buckets_own_names_decide_who_may_limit_it(
    user: str, client_id: str, entities: list[tuple[str | None, str | None]]
) -> None:
    assert limit_precedence(user, client_id) == [QuotaEntity(*names) for names in entities]
