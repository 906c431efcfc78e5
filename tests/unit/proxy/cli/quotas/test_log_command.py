"""How `log` shows an entry."""

from dataclasses import replace

import pytest

from proxy.cli.quotas.log_command import HEAD, to_json, to_row
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
