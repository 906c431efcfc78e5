"""How `log` shows an entry, and which it shows."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from proxy.cli.main import main
from proxy.cli.quotas.cluster import audit_log
from proxy.cli.quotas.cluster.audit_log import AuditEntry
from proxy.cli.quotas.log_command import HEAD, to_json, to_row
from proxy.upstream.cluster_access import ClusterAccess
from tests.unit.proxy.cli.quotas.cluster.test_audit_log import ENTRY


def test_row_has_the_fields_of_the_entry() -> None:
    assert dict(zip(HEAD, to_row(ENTRY), strict=True)) == {
        "TIME": "2026-11-30T12:00:00Z",
        "BY": "admin",
        "CLIENT-ID": "adminclient-1",
        "FROM": "10.0.0.7",
        "ENTITY": "user alice, client-id <default>",
        "QUOTA": "producer_byte_rate",
        "VALUE": "1048576",
    }


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"value": None}, "removed"),
        ({"value": None, "overrides_file": True}, "removed, overriding the file"),
        ({"value": "0:1,1:2"}, '"0:1,1:2"'),
        ({"value": "1048576"}, "1048576"),
        ({"value": ""}, '""'),
        ({"value": True}, "true"),
        ({"temporary": True, "expires_at_ms": 1_796_040_000_000}, "1048576 until 2026-11-30T12:00:00Z"),
        ({"temporary": True, "value": None}, "temporary value ended"),
        (
            {"temporary": True, "value": None, "expires_at_ms": 1_796_040_000_000},
            "removed until 2026-11-30T12:00:00Z",
        ),
    ],
)
def test_values(change: dict[str, object], shown: str) -> None:
    assert to_row(replace(ENTRY, **change))[-1] == shown  # type: ignore[arg-type]


def test_unknown_author_and_unknown_kind() -> None:
    row = to_row(replace(ENTRY, by="", address="", entity=None, kind="topic-config"))
    assert (row[1], row[3], row[4]) == ("-", "-", "topic-config")


def test_control_characters_are_quoted() -> None:
    assert to_row(replace(ENTRY, by="\x1b[2J"))[1] == r'"\u001b[2J"'


def test_json() -> None:
    shown = to_json(ENTRY)
    assert shown["entity"] == {"user": "alice", "client-id": None}
    assert shown["value"] == 1048576.0


@pytest.fixture
def a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic with a change of alice's quota, one of a topic's config, and two unreadable records."""

    async def read(cluster: ClusterAccess, topic: str) -> tuple[list[AuditEntry], int]:
        assert topic == "__quota_proxy_config"
        return [ENTRY, replace(ENTRY, by="bob", entity=(("topic", "orders"),))], 2

    monkeypatch.setattr(audit_log, "read_log", read)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["quotas", "log", "--bootstrap", "127.0.0.1:1", *arguments])


@pytest.mark.usefixtures("a_log")
def test_the_table_has_all_changes_and_the_number_of_unreadable_records() -> None:
    result = run()
    assert result.exit_code == 0
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["BY", "admin", "bob"]
    assert "2 unreadable records of __quota_proxy_config" in result.stderr


@pytest.mark.usefixtures("a_log")
@pytest.mark.parametrize(
    ("selects", "authors"),
    [((), ["admin", "bob"]), (("--user", "alice"), ["admin"]), (("--of-topic", "orders"), ["bob"])],
)
def test_json_has_one_object_a_line_of_the_selected_changes(
    selects: tuple[str, ...], authors: list[str]
) -> None:
    result = run("--format", "json", *selects)
    assert [json.loads(line)["by"] for line in result.stdout.splitlines()] == authors
