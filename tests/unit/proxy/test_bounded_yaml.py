"""Bounded YAML: what would end the process, or take time and memory without proportion, is an error."""

from pathlib import Path

import pytest
import yaml

from proxy.bounded_yaml import (
    ALWAYS_REPEATED,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NUMBER_CHARACTERS,
    MAX_REPEATED,
    OutOfBounds,
    RepeatedKey,
    compose,
    construct,
    read_text,
    repeated_key,
)

TEN_TIMES_EIGHT = "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9)
)
TEN_MERGES_EIGHT_TIMES = "".join(
    f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}]}}\n" for level in range(1, 9)
)


def parse(text: str) -> object:
    """The value of the text's only document."""
    return construct(compose(text))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "[{a: "])
def test_deep_nesting_is_an_error_and_does_not_end_the_process(opening: str) -> None:
    """100,000 levels overflow the stack of libyaml's composer."""
    with pytest.raises(OutOfBounds, match=str(MAX_DEPTH)) as caught:
        parse(opening * 100_000)
    assert caught.value.problem_mark is not None


def test_deep_indentation_is_an_error() -> None:
    text = "".join(f"{' ' * level}a:\n" for level in range(2000))
    with pytest.raises(OutOfBounds, match=str(MAX_DEPTH)) as caught:
        parse(text)
    assert caught.value.problem_mark is not None
    assert caught.value.problem_mark.line == MAX_DEPTH


def test_the_deepest_value() -> None:
    value = parse("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for _ in range(MAX_DEPTH - 1):
        assert isinstance(value, list)
        [value] = value
    assert value == []


@pytest.mark.parametrize(
    "text",
    ["a0: &a0 lol\n" + TEN_TIMES_EIGHT, "a0: &a0 {x: 1}\n" + TEN_MERGES_EIGHT_TIMES],
    ids=["lists", "merge keys"],
)
def test_aliases_do_not_multiply(text: str) -> None:
    with pytest.raises(OutOfBounds, match=str(MAX_REPEATED)):
        parse(text)


def test_a_value_that_contains_itself() -> None:
    with pytest.raises(OutOfBounds, match=r"\*a\b"):
        parse("a: &a [1, *a]")


def test_entries_may_share_defaults() -> None:
    """As in a quota file whose entries merge the same values."""
    entries = "".join(f"- {{<<: *defaults, user: u{entry}}}\n" for entry in range(ALWAYS_REPEATED))
    value = parse("- &defaults {a: 1, b: 2}\n" + entries)
    assert isinstance(value, list)
    assert value[-1] == {"a": 1, "b": 2, "user": f"u{ALWAYS_REPEATED - 1}"}


@pytest.mark.parametrize(
    "number", ["1:1" + ":59" * 200_000, "0x" + "f" * 200_000, "1:1" + ":59" * 200_000 + ".5"]
)
def test_a_long_number_is_an_error(number: str) -> None:
    with pytest.raises(OutOfBounds, match=str(MAX_NUMBER_CHARACTERS)):
        parse(f"a: {number}")
    assert parse(f"a: '{number}'") == {"a": number}


def test_numbers() -> None:
    assert parse("[1, 0x1f, 1:30, 1_000, 1.5, .inf, 1e3]") == [1, 31, 90, 1000, 1.5, float("inf"), "1e3"]


@pytest.mark.parametrize("text", ["2024-13-45", "!!bool maybe", "!!int ''", "!!float ''", "!!timestamp x"])
def test_a_value_that_does_not_fit_its_type_is_a_yaml_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        parse(text)
    assert not isinstance(caught.value, OutOfBounds)
    assert caught.value.__cause__ is not None


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(OutOfBounds, match=f"{MAX_BYTES >> 20} MiB"):
        read_text(path)


def test_an_endless_file() -> None:
    with pytest.raises(OutOfBounds):
        read_text(Path("/dev/zero"))


def test_nothing() -> None:
    assert compose("# a comment\n") is None
    assert repeated_key(None) is None
    assert parse("") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: 1\nb: 2\na: 3\n", RepeatedKey(("a",), 1, 3)),
        ("- x\n- b: {c: 1, c: 2}\n", RepeatedKey((1, "b", "c"), 2, 2)),
        ("a: &a {b: 1}\nc: *a\nd: {1: x, '1': y}\n", None),
    ],
)
def test_a_key_that_occurs_twice_is_found(text: str, found: RepeatedKey | None) -> None:
    """The number 1 and the text 1 are two keys."""
    assert repeated_key(compose(text)) == found
