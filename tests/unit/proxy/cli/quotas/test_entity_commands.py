"""The commands list, get, set and delete: output, requests and exit codes."""

import json

import pytest
from kio.schema.errors import ErrorCode

from proxy.cli.quotas.entity import Entity
from proxy.store.layer_report import ConfigReport, LayerValue
from tests.unit.proxy.cli.quotas.commands_kit import ALICE, ALICE_APP, ANY_IP, QUOTAS, quotas
from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker


def test_list(filled: FakeBroker) -> None:
    lines = quotas(filled, "list").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["user", "client-id", "ip", "connection_creation_rate", "consumer_byte_rate", "producer_byte_rate"],
        ["alice", "-", "-", "-", "5", "1000000"],
        ["alice", "app", "-", "-", "-", "7"],
        ["-", "-", "<default>", "10", "-", "-"],
    ]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--user", "alice"], {ALICE, ALICE_APP}),
        (["--user", "alice", "--client-id", "app"], {ALICE_APP}),
        (["--ip-default"], {ANY_IP}),
        (["--user-default"], set()),
    ],
)
def test_list_takes_filters(options: list[str], found: set[Entity], filled: FakeBroker) -> None:
    shown = json.loads(quotas(filled, "list", "--format", "json", *options).stdout)
    assert len(shown["quotas"]["clients"]) == len(found)
    parts = {(part.entity_type, part.match) for part in filled.describes[-1].components}
    assert all(parts <= set(entity) for entity in found)


def test_list_of_no_quotas(broker: FakeBroker) -> None:
    result = quotas(broker, "list")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no quotas\n")


def test_get_is_exact(filled: FakeBroker) -> None:
    result = quotas(filled, "get", "--user", "alice", "--format", "yaml")
    assert result.stdout == (
        "quotas:\n  clients:\n  - entity: {user: alice}\n"
        "    consumer_byte_rate: 5\n    producer_byte_rate: 1000000\n"
    )


def test_get_of_an_entity_without_quotas_exits_1(filled: FakeBroker) -> None:
    result = quotas(filled, "get", "--client-id", "app")
    assert result.exit_code == 1
    assert "client-id app" in result.stderr


def test_set(filled: FakeBroker) -> None:
    result = quotas(filled, "set", "--user", "alice", "producer_byte_rate=1.5e3", "request_percentage=12.5")
    assert result.exit_code == 0
    assert filled.quotas[ALICE] == {
        "consumer_byte_rate": 5.0,
        "producer_byte_rate": 1500.0,
        "request_percentage": 12.5,
    }


def test_set_for_a_default(broker: FakeBroker) -> None:
    quotas(broker, "set", "--user-default", "--client-id", "app", "producer_byte_rate=1")
    assert broker.quotas == {(("user", None), ("client-id", "app")): {"producer_byte_rate": 1.0}}


def test_set_until_a_time(broker: FakeBroker) -> None:
    result = quotas(broker, "set", "--user", "bob", "producer_byte_rate=1", "--expires", "2126-12-01T00:00Z")
    assert result.exit_code == 0
    assert "until 2126-12-01T00:00:00Z" in result.stdout
    ops = {op.key: op.value for op in broker.alterations[0].entries[0].ops}
    assert ops == {"producer_byte_rate": 1.0, "expires_at_ms": 4_951_756_800_000.0}


def test_delete_until_a_time(filled: FakeBroker) -> None:
    result = quotas(
        filled, "delete", "--user", "alice", "producer_byte_rate", "--expires", "2126-12-01T00:00Z"
    )
    assert result.exit_code == 0
    assert result.stdout == "user alice: producer_byte_rate removed until 2126-12-01T00:00:00Z\n"
    ops = [(op.key, op.remove) for op in filled.alterations[0].entries[0].ops]
    assert ops == [("producer_byte_rate", True), ("expires_at_ms", False)]


def test_delete_ends_temporary_quotas(filled: FakeBroker) -> None:
    result = quotas(filled, "delete", "--user", "alice", "--temporary")
    assert (result.exit_code, result.stdout) == (0, "user alice: temporary quotas removed\n")
    ops = [(op.key, op.remove) for op in filled.alterations[0].entries[0].ops]
    assert ops == [("expires_at_ms", True)]


def test_a_plain_broker_has_no_temporary_quotas(broker: FakeBroker) -> None:
    message = "Invalid configuration key expires_at_ms"
    broker.fault = lambda entity: (ErrorCode.invalid_request, message)
    result = quotas(broker, "set", "--user", "bob", "producer_byte_rate=1", "--for", "2h")
    assert result.exit_code == 1
    assert f"user bob: not altered: {message} (INVALID_REQUEST) (only a quota proxy" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ([], None),
        (["producer_byte_rate"], {"consumer_byte_rate": 5.0}),
        (["producer_byte_rate", "consumer_byte_rate"], None),
    ],
)
def test_delete(arguments: list[str], left: dict[str, float] | None, filled: FakeBroker) -> None:
    assert quotas(filled, "delete", "--user", "alice", *arguments).exit_code == 0
    assert filled.quotas.get(ALICE) == left
    assert ALICE_APP in filled.quotas


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--user", "bob"], "user bob has no quota to remove"),
        (["--user", "alice", "x"], "it has consumer_byte_rate, producer_byte_rate"),
    ],
)
def test_delete_of_a_missing_quota_is_rejected(
    arguments: list[str], problem: str, filled: FakeBroker
) -> None:
    result = quotas(filled, "delete", *arguments)
    assert result.exit_code == 1
    assert problem in result.stderr
    assert not filled.alterations


def test_dry_runs_change_nothing(filled: FakeBroker) -> None:
    assert quotas(filled, "set", "--user", "bob", "producer_byte_rate=1", "--dry-run").exit_code == 0
    assert quotas(filled, "delete", "--user", "alice", "--dry-run").exit_code == 0
    assert [request.validate_only for request in filled.alterations] == [True] * 2
    assert filled.quotas == QUOTAS


RATE = "producer.byte.rate"


@pytest.fixture
def proxied(filled: FakeBroker) -> FakeBroker:
    """A proxy whose file has quotas."""
    filled.of_file = {ALICE: {"producer_byte_rate": 2.0}}
    filled.lasting = filled.quotas
    filled.report = ConfigReport(
        names={"topic": [RATE, "consumer.byte.rate"], "broker": ["flag"]},
        topics={
            "orders": {RATE: [LayerValue("tools", "4"), LayerValue("file", "1")]},
            "<default>": {"consumer.byte.rate": [LayerValue("file", "8")]},
        },
        brokers={},
    )
    return filled


def test_topics_are_listed_behind_the_clients(proxied: FakeBroker) -> None:
    lines = [line.split() for line in quotas(proxied, "list").stdout.splitlines()]
    assert lines[5:] == [
        ["entity", "config", "value", "from"],
        ["topic", "orders", RATE, "4", "tools"],
        ["topic", "<default>", "consumer.byte.rate", "8", "file"],
    ]
    shown = json.loads(quotas(proxied, "list", "--format", "json", "--topic-default").stdout)
    assert shown == {"quotas": {"topics": {"<default>": {"consumer.byte.rate": 8}}}}


def test_topic_is_shown_with_what_applies_to_it_and_where_that_comes_from(proxied: FakeBroker) -> None:
    lines = quotas(proxied, "get", "--topic", "orders").stdout.splitlines()
    assert [line.split()[2:] for line in lines[1:]] == [
        ["consumer.byte.rate", "8", "topic", "<default>,", "file"],
        [RATE, "4", "topic", "orders,", "tools"],
    ]
    own = json.loads(quotas(proxied, "get", "--topic", "orders", "--format", "json").stdout)
    assert own == {"quotas": {"topics": {"orders": {RATE: 4}}}}
    assert quotas(proxied, "get", "--broker", "1").exit_code == 1


def test_a_topic_or_broker_that_does_not_exist_is_told(proxied: FakeBroker) -> None:
    proxied.topics_missing.add("ordres")
    result = quotas(proxied, "get", "--topic", "ordres")
    assert (result.exit_code, result.stderr) == (0, "quota-proxy: the topic ordres does not exist\n")
    assert "topic <default>" in result.stdout
    result = quotas(proxied, "get", "--broker", "9")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the cluster has no broker 9; its brokers: 1" in result.stderr


def test_set_and_delete_of_a_topic(proxied: FakeBroker) -> None:
    assert quotas(proxied, "set", "--topic", "orders", f"{RATE}=9").exit_code == 0
    assert quotas(proxied, "set", "--broker", "01", "flag=true", "--for", "1h").exit_code == 0
    result = quotas(proxied, "delete", "--topic", "orders")
    assert result.exit_code == 0
    assert RATE in result.stderr, "the file has it, and is hidden now"
    ops = [
        [(config.name, config.value) for config in request.resources[0].configs]
        for request in proxied.config_alterations
    ]
    assert ops[0] == [(RATE, "9")]
    assert [name for name, _ in ops[1]] == ["flag", "expires.at.ms"]
    assert ops[2] == [(RATE, None)]


def test_what_is_no_quota_of_the_proxy_is_not_sent(proxied: FakeBroker, broker: FakeBroker) -> None:
    result = quotas(proxied, "set", "--topic", "orders", "retention.ms=5")
    assert result.exit_code == 1
    assert "retention.ms" in result.stderr
    proxied.report = None
    assert quotas(proxied, "set", "--topic", "orders", f"{RATE}=5").exit_code == 1
    assert proxied.config_alterations == []


def test_back_to_file(proxied: FakeBroker) -> None:
    result = quotas(proxied, "set", "--user", "alice", "--back-to-file", "producer_byte_rate")
    assert result.exit_code == 0, result.stderr
    [entry] = proxied.alterations[-1].entries
    assert [(op.key, op.remove) for op in entry.ops] == [
        ("producer_byte_rate", True),
        ("back_to_file", False),
    ]
    assert quotas(proxied, "set", "--topic", "orders", "--back-to-file").exit_code == 0
    [resource] = proxied.config_alterations[-1].resources
    assert [(config.name, config.value) for config in resource.configs] == [("back.to.file", "true")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["set", "--user", "a", "--back-to-file", "producer_byte_rate=1"],
        ["set", "--user", "a", "--back-to-file", "--for", "1h"],
        ["set", "--user", "a"],
        ["set", "--topic", "t", "--user", "a", f"{RATE}=1"],
        ["set", "--broker", "one", "flag=true"],
        ["set", "--user", "a", "producer_byte_rate=1MB/s"],
        ["set", "--topic", "t", f"{RATE}=1MB/s"],
    ],
)
def test_wrong_usage_of_set(arguments: list[str], proxied: FakeBroker) -> None:
    assert quotas(proxied, *arguments).exit_code == 2
    assert not proxied.alterations
    assert not proxied.config_alterations
