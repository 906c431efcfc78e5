"""The commands list, get, set and delete: output, requests and exit codes."""

import json

import pytest
from kio.schema.errors import ErrorCode

from proxy.cli.quotas.entity import Entity
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
