"""Plain entries have the values that a YAML parser gives them, and everything else is left to the parser."""

from pathlib import Path

import pytest

from proxy import bounded_yaml
from proxy.config.yaml.document import read
from proxy.config.yaml.plain_entries import LEAST_ENTRIES, put_back, take
from proxy.errors import SettingsError

MANY = LEAST_ENTRIES + 2


def entries(first: int = 0, indent: str = "  ", count: int = MANY) -> str:
    """A run of plain entries."""
    return "".join(
        f"{indent}- entity:\n{indent}    client-id: c{number}\n{indent}  producer_byte_rate: {number + 1}\n"
        for number in range(first, first + count)
    )


PLAIN = [
    "  - entity: {user: a, client-id: b.c-d_e}\n    producer_byte_rate: 1.5\n",
    "  - entity: {client-id: 'yes', user: \"it's\"}\n    consumer_byte_rate: 0\n",
    "  - entity: {user: 'a, user: b'}\n    request_percentage: 100\n",
    "  - entity: {user: <default>}\n    request_percentage: 0.125\n    producer_byte_rate: 9\n",
    "  - entity:\n        user: a\n        client-id: b\n    producer_byte_rate: 1234567890123456789\n",
    "  - entity:\n      ip: 'fe80::1'\n    connection_creation_rate: 5\n",
]
OTHER = [
    "  - entity: {user: yes}\n    producer_byte_rate: 1\n",
    "  - entity: {user: Off}\n    producer_byte_rate: 1\n",
    "  - entity: {user: 12}\n    producer_byte_rate: 1\n",
    '  - entity: {user: "a\\tb"}\n    producer_byte_rate: 1\n',
    "  - entity: {user: 'it''s'}\n    producer_byte_rate: 1\n",
    "  - entity: {user: é}\n    producer_byte_rate: 1\n",
    "  - entity: {user: a}\n    producer_byte_rate: 010\n",
    "  - entity: {user: a}\n    producer_byte_rate: 1_000\n",
    "  - entity: {user: a}\n    producer_byte_rate: 1e3\n",
    "  - entity: {user: a}\n    producer_byte_rate: 190:20:30\n",
    "  - entity: {user: a}\n    producer_byte_rate: 1\n    scope: cluster\n",
    "  - entity: {user: a}\n    producer_byte_rate: 1 # a comment\n",
    "  - entity:\n    user: a\n    producer_byte_rate: 1\n",
    "  - entity: {user: a}\n    producer_byte_rate: 100\n      200\n",
    "  # a comment\n\n",
    "  - text\n",
]


@pytest.mark.parametrize("entry", [*PLAIN, *OTHER])
def test_the_values_are_those_of_the_parser(tmp_path: Path, entry: str) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(
        f"a: 1\nclients:\n{entry}{entries()}{entry}{entries(MANY)}{entry}b: 2\n", encoding="utf-8"
    )
    expected = bounded_yaml.construct(bounded_yaml.compose(file.read_text(encoding="utf-8")))
    assert read(file).value == expected


@pytest.mark.parametrize("entry", PLAIN)
def test_plain_entries_are_taken(entry: str) -> None:
    rest, taken = take(f"clients:\n{entry}{entries()}")
    assert [len(each) for each in taken.values()] == [MANY]
    assert len(rest) < 200


@pytest.mark.parametrize(
    "text",
    [
        "clients: |\n{}",
        "clients: 'text\n{}'\n",
        "clients:\n{}anchor: &a 1\n",
        "clients: &a\n{}again: *a\n",
        "{}",
        "a:\n{}b:\n{}",
    ],
)
def test_runs_elsewhere_have_the_values_of_the_parser(tmp_path: Path, text: str) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(text.replace("{}", entries()))
    assert read(file).value == bounded_yaml.construct(bounded_yaml.compose(file.read_text()))


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("  - entity: {user: a}\n    producer_byte_rate: 1\n    producer_byte_rate: 2\n", 3 * MANY + 4),
        ("  - entity: {user: a, user: b}\n    producer_byte_rate: 1\n", 3 * MANY + 2),
        ("  - entity: [\n", 3 * MANY + 3),
        ("   - entity: {user: a}\n     producer_byte_rate: 1\n", 3 * MANY + 2),
    ],
)
def test_errors_have_the_lines_of_the_file(tmp_path: Path, entry: str, line: int) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(f"clients:\n{entries()}{entry}{entries()}b: 2\n")
    with pytest.raises(SettingsError) as raised:
        read(file)
    assert raised.value.line == line


def test_a_value_behind_a_run_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(f"clients:\n{entries()}b: 2\n")
    document = read(file)
    assert document.line(("clients", MANY - 1, "producer_byte_rate")) == 3 * MANY + 1
    assert document.line(("b",)) == 3 * MANY + 2


def test_a_placeholder_that_is_no_item_of_a_list_is_reported() -> None:
    assert put_back({"a": ["one", "x", "two"]}, {"x": [1]})
    assert not put_back({"a": "x"}, {"x": [1]})
    assert not put_back({"a": ["x"], "b": ["x"]}, {"x": [1]})


def test_a_short_list_is_left_to_the_parser() -> None:
    text = f"clients:\n{entries(count=LEAST_ENTRIES)}"
    assert take(text) == (text, {})
