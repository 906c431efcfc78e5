"""The file of tenants: who an entry is for, and what is rejected."""

from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.inputs.tenants import NOBODY, Directory, Tenant, read_tenants

ENTRIES = """
tenants:
  - {cluster: test, cost_center: "0"}
  - {user: alice, client_id: billing, cost_center: "1"}
  - {user: 'CN=a,OU="x"', cost_center: "2"}
  - {user_prefix: "team-", client_id: "", cost_center: "3"}
  - {user: alice, cost_center: "4"}
  - {client_id_prefix: "*", cost_center: "5"}
  - {user: alice, client_id: billing, name: shadowed}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    file = tmp_path / "tenants.yaml"
    file.write_text(ENTRIES)
    return read_tenants(file)


@pytest.mark.parametrize(
    ("tenant", "cost_center"),
    [
        (("test", "alice", "billing"), "0"),
        (("local", "alice", "billing"), "1"),
        (("local", 'CN=a,OU="x"', "any"), "2"),
        (("local", "team-b", ""), "3"),
        (("local", "team-b", "c"), ""),
        (("local", "alice", "*x"), "4"),
        (("local", "bob", "*x"), "5"),
        (("local", "bob", "x"), ""),
        (("local", "Alice", "billing"), ""),
    ],
)
def test_the_first_entry_that_matches(
    directory: Directory, tenant: tuple[str, str, str], cost_center: str
) -> None:
    assert directory.find(*tenant).cost_center == cost_center


def test_nobody_is_in_an_empty_file() -> None:
    assert Directory().find("local", "alice", "billing") is NOBODY
    assert Directory([Tenant(name="x", user="a")]).find("local", "b", "") is NOBODY


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{}", "tenants"),
        ("tenants: [{user: 5, cost_center: x}]", "tenants[0].user"),
        ("tenants: [{user: a, cost_center: 4711}]", "tenants[0].cost_center"),
        ("tenants: [{user: a, user_prefix: a, cost_center: x}]", "tenants[0]"),
        ("tenants: [{user: a}]", "tenants[0]"),
        ("tenants: [{usr: a, cost_center: x}]", "usr"),
        ("tenants: [{user_prefix: '', cost_center: x}]", "user_prefix"),
    ],
)
def test_a_bad_file_is_rejected_with_the_place(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        read_tenants(file)
    assert str(file) in str(raised.value)
    assert place in str(raised.value)
