"""Quotas as YAML: what an export writes is what an import reads, and mistakes have a line."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from proxy.cli.quotas.entity import SECTIONS, Entity, Quotas, make_entity
from proxy.cli.quotas.quota_file import has_shape, read_quotas, to_json, to_yaml
from proxy.errors import SettingsError

QUOTAS: Quotas = {
    (("user", "alice"), ("client-id", "billing")): {"producer_byte_rate": 1048576.0},
    (("ip", None),): {"connection_creation_rate": 100.0},
    (("user", "42"),): {"request_percentage": 12.5, "consumer_byte_rate": 1.0},
}
YAML = """\
quotas:
  clients:
  - entity: {user: '42'}
    consumer_byte_rate: 1
    request_percentage: 12.5
  - entity: {user: alice, client-id: billing}
    producer_byte_rate: 1048576
  - entity: {ip: <default>}
    connection_creation_rate: 100
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quotas.yaml"


def test_written_in_a_stable_order_with_text_as_text() -> None:
    assert to_yaml(QUOTAS) == YAML
    assert to_yaml(dict(reversed(QUOTAS.items()))) == YAML


def test_read(file: Path) -> None:
    file.write_text(YAML)
    assert read_quotas(file).lasting == QUOTAS


def test_json_has_the_same_shape(file: Path) -> None:
    file.write_text(to_json(QUOTAS))
    assert json.loads(file.read_text()) == yaml.safe_load(YAML)
    assert read_quotas(file).lasting == QUOTAS


def test_file_without_quotas(file: Path) -> None:
    file.write_text(to_yaml({}))
    assert read_quotas(file).lasting == {}


def test_of_a_whole_configuration_only_the_quotas_are_read(file: Path) -> None:
    file.write_text("listeners: [{no: matter}]\nquotas:\n  algorithm: pace\n  brokers: {}\n  clients: []\n")
    read = read_quotas(file)
    assert read.lasting == {}
    assert read.sections == {"clients", "brokers"}


RESOURCES: Quotas = {
    **{
        (("topic", name),): {"producer.byte.rate": "5", "producer.byte.rate.action": "reject"}
        for name in ("yes", "1.0", "null", "a-b_c", "1e3")
    },
    (("topic", "moves"),): {
        "leader.replication.throttled.replicas": "0:1,1:2",
        "follower.replication.throttled.replicas": "*",
    },
    (("topic", None),): {"consumer.byte.rate": "7"},
    (("broker", "2"),): {"follower.replication.throttled": "true", "leader.replication.throttled.rate": "0"},
    (("broker", "10"),): {"total.bytes.in.per.sec.threshold": "1"},
    (("broker", None),): {"total.bytes.in.per.sec.threshold": "99"},
}


def test_topics_and_brokers_are_read_as_they_are_written(file: Path) -> None:
    for write in (to_yaml, to_json):
        file.write_text(write({**QUOTAS, **RESOURCES}, SECTIONS))
        read = read_quotas(file)
        assert read.lasting == {**QUOTAS, **RESOURCES}
        assert read.sections == set(SECTIONS)


def test_topics_and_brokers_have_the_types_and_the_order_of_the_configuration() -> None:
    written = yaml.safe_load(to_yaml(RESOURCES, SECTIONS))["quotas"]
    assert written["clients"] == []
    assert list(written["topics"]) == ["1.0", "1e3", "a-b_c", "moves", "null", "yes", "<default>"]
    assert written["topics"]["moves"]["leader.replication.throttled.replicas"] == "0:1,1:2"
    assert list(written["brokers"]) == [2, 10, "<default>"]
    assert written["brokers"][2] == {
        "follower.replication.throttled": True,
        "leader.replication.throttled.rate": 0,
    }


def test_sections_of_a_file_are_those_that_it_has(file: Path) -> None:
    file.write_text("quotas: {topics: {orders: {producer.byte.rate: 1, action: reject}}}")
    read = read_quotas(file)
    assert read.sections == {"topics"}
    assert read.lasting == {
        (("topic", "orders"),): {"producer.byte.rate": "1", "producer.byte.rate.action": "reject"}
    }


def test_a_number_with_a_unit_is_rejected_with_the_number_to_write(file: Path) -> None:
    file.write_text("quotas: {clients: [{entity: {user: a}, producer_byte_rate: 10m}]}")
    with pytest.raises(SettingsError) as caught:
        read_quotas(file)
    assert "10485760" in str(caught.value)


def test_numbers_may_be_text(file: Path) -> None:
    """YAML 1.1 takes 1e6 for text."""
    file.write_text(
        "quotas: {clients: [{entity: {user: a}, producer_byte_rate: 1e6, consumer_byte_rate: '7'}]}"
    )
    assert read_quotas(file).lasting == {
        (("user", "a"),): {"producer_byte_rate": 1e6, "consumer_byte_rate": 7.0}
    }


@pytest.mark.parametrize(
    "name", ["null", "yes", "1e6", "~", "a: b", "#x", "- x", "{}", " ", "'", '"', "\n", "é", "\x85"]
)
def test_names_that_yaml_would_misread(name: str, file: Path) -> None:
    quotas: Quotas = {(("user", name),): {"producer_byte_rate": 1.0}}
    file.write_text(to_yaml(quotas), encoding="utf-8")
    assert read_quotas(file).lasting == quotas


_name = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name != "<default>"
)
_entity = st.dictionaries(st.sampled_from(["user", "client-id", "ip"]), _name, min_size=1)
_value = st.floats(allow_nan=False, allow_infinity=False)
_keys = st.sampled_from(["producer_byte_rate", "request_percentage", "a key: of the future"])


@given(entities=st.lists(st.tuples(_entity, st.dictionaries(_keys, _value, min_size=1))))
def test_what_is_written_is_what_is_read(
    entities: list[tuple[dict[str, str | None], dict[str, float]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    quotas: Quotas = {make_entity(parts.items()): {**values} for parts, values in entities}
    file = tmp_path_factory.getbasetemp() / "written.yaml"
    for write in (to_yaml, to_json):
        file.write_text(write(quotas), encoding="utf-8")
        assert read_quotas(file).lasting == quotas


def test_temporary_quotas_stand_apart(file: Path) -> None:
    """As in the proxy's configuration, where an entity may have both."""
    file.write_text(
        "quotas:\n  clients:\n    - {entity: {user: a}, producer_byte_rate: 1}\n"
        "    - {entity: {user: a}, producer_byte_rate: 2, consumer_byte_rate: 3, expires: 2030-12-31}\n"
    )
    read = read_quotas(file)
    assert read.lasting == {(("user", "a"),): {"producer_byte_rate": 1.0}}
    assert read.temporary == {
        ((("user", "a"),), "producer_byte_rate"),
        ((("user", "a"),), "consumer_byte_rate"),
    }


def test_a_real_name_that_the_file_would_take_for_the_default() -> None:
    assert has_shape((("user", None),))
    literal: Entity = (("user", "<default>"),)
    assert not has_shape(literal)


ENTRY = "quotas:\n  clients:\n    - entity: {user: a}\n      producer_byte_rate: 1\n"


CLIENTS = ("quotas", "clients")
TOPICS = ("quotas", "topics")


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("", None, ()),
        ("quotas: [", 2, ()),
        ("quotas: {clients: " + "[" * 100_000, 1, ()),
        ("listeners: []", None, ("quotas",)),
        ("quotas: {algorithm: pace}", 1, ("quotas",)),
        ("quotas:\n  topics: []\n", 2, ("quotas", "topics")),
        ("quotas:\n  topics:\n    yes: {producer.byte.rate: 1}\n", 2, ("quotas", "topics", "True")),
        ("quotas:\n  topics:\n    a b: {producer.byte.rate: 1}\n", 3, ("quotas", "topics", "a b")),
        ("quotas:\n  topics:\n    a: {speed: 1}\n", 3, ("quotas", "topics", "a", "speed")),
        ("quotas:\n  topics:\n    a: {producer.byte.rate: 1MB}\n", 3, (*TOPICS, "a", "producer.byte.rate")),
        ("quotas:\n  brokers:\n    no: {}\n", 2, ("quotas", "brokers", "False")),
        ("quotas:\n  brokers:\n    one: {}\n", 3, ("quotas", "brokers", "one")),
        ("quotas:\n", 1, ("quotas",)),
        ("quotas:\n  clients: {}\n", 2, CLIENTS),
        ("quotas:\n  clients:\n    - a\n", 3, (*CLIENTS, 0)),
        (f"{ENTRY}    - producer_byte_rate: 1\n", 5, (*CLIENTS, 1, "entity")),
        (f"{ENTRY}    - entity: {{}}\n", 5, (*CLIENTS, 1, "entity")),
        (f"{ENTRY}    - entity: {{usr: b}}\n", 5, (*CLIENTS, 1, "entity", "usr")),
        (f"{ENTRY}    - entity: {{user: 42}}\n", 5, (*CLIENTS, 1, "entity", "user")),
        (f"{ENTRY}    - entity: {{user: ''}}\n", 5, (*CLIENTS, 1, "entity", "user")),
        (f"{ENTRY}    - entity: {{user: b}}\n", 5, (*CLIENTS, 1)),
        (f"{ENTRY}    - entity:\n        user: a\n      b: 1\n", 5, (*CLIENTS, 1, "entity")),
        (f"{ENTRY}      consumer_byte_rate: fast\n", 5, (*CLIENTS, 0, "consumer_byte_rate")),
        (f"{ENTRY}      consumer_byte_rate:\n", 5, (*CLIENTS, 0, "consumer_byte_rate")),
        (f"{ENTRY}      producer_byte_rate: 2\n", 5, (*CLIENTS, 0, "producer_byte_rate")),
        (f"{ENTRY}      7: 2\n", 3, (*CLIENTS, 0)),
        (f"{ENTRY}      expires_at_ms: 9\n", 5, (*CLIENTS, 0, "expires_at_ms")),
    ],
)
def test_mistake_is_rejected_by_its_key(
    text: str, line: int | None, key: tuple[str | int, ...], file: Path
) -> None:
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_quotas(file)
    assert (caught.value.file, caught.value.line, caught.value.key) == (file, line, key)
