"""Conversion: msgspec's errors, told with the key as it stands in the file."""

from typing import Annotated, Literal

import msgspec
import pytest

from proxy.config.yaml.convert import convert, show
from proxy.errors import SettingsError


class Inner(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    number: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    inners: tuple[Inner, ...] = ()
    maybe: Inner | None = None
    numbered: dict[int, str] = {}
    either: Inner | Literal["none"] = "none"
    choice: Literal["pace", "window"] = "pace"
    least: Annotated[int, msgspec.Meta(ge=1)] = 1
    flag: bool = False
    switch: Inner | bool | Literal["auto"] = "auto"
    count: Annotated[int, msgspec.Meta(ge=1, le=9)] | Literal["auto"] = 1
    wait_seconds: float = 1
    size: int = 1
    some: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("a",)


def test_fitting_value() -> None:
    assert convert({"inners": [{"number": 3}]}, Outer) == Outer(inners=(Inner(number=3),))
    assert convert({"numbered": {1: "a", "2": "b"}}, Outer).numbered == {1: "a", 2: "b"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"inners": [{}, {"number": "x"}]}, "inners[1].number: expected an integer, got 'x'"),
        ({"inners": {}}, "inners: expected a list, got an empty mapping"),
        ({"inners": "one"}, "inners: expected a list, got 'one'; write [one]"),
        ({"inners": [{"nunber": 1}]}, "inners[0].nunber: unknown key; did you mean number?"),
        ({"maybe": {"number": []}}, "maybe.number: expected an integer, got an empty list"),
        ({"maybe": {"x": 1}}, "maybe.x: unknown key; expected one of number"),
        ({"maybe": True}, "maybe: expected a mapping, got true"),
        ({"some": [5]}, "some[0]: expected text, got 5; put it in quotes"),
        ({"either": False}, "either: expected a mapping or none, got false"),
        ({"switch": "no"}, "switch: expected a mapping or on or off or auto, got 'no'"),
        (
            {"switch": "off"},
            "switch: expected a mapping or on or off or auto, got 'off'; write off without quotes",
        ),
        ({"choice": True}, "choice: expected one of pace, window, got true"),
        ({"least": 0}, "least: expected an integer >= 1, got 0"),
        ({"least": None}, "least: expected an integer, got nothing"),
        ({"count": "two"}, "count: expected an integer from 1 to 9 or auto, got 'two'"),
        ({"count": 0}, "count: expected an integer from 1 to 9 or auto, got 0"),
        ({"wait_seconds": "10m"}, "wait_seconds: expected a number, got '10m'; write 600"),
        ({"size": "2 KiB"}, "size: expected an integer, got '2 KiB'; write 2048"),
        ({"flag": 1}, "flag: expected true or false, got 1"),
        ({"some": []}, "some: expected a list of length >= 1, got an empty list"),
        ({"numbered": {"x": "a"}}, "numbered: its keys have to be numbers; expected an integer"),
        ({1: 2}, "its keys have to be text; put them in quotes"),
    ],
)
def test_error_has_key_and_value(value: object, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        convert(value, Outer)
    assert str(caught.value) == expected


def test_values_are_shown_short() -> None:
    assert show("x" * 1000) == "'" + "x" * 56 + "..."
    assert [show(value) for value in (None, True, 1.5, [1], {"a": 1})] == [
        "nothing", "true", "1.5", "a list", "a mapping",
    ]  # fmt: skip
