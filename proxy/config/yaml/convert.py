"""Converts plain values to typed settings with msgspec; its errors name the key in the file."""

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from proxy.config.yaml.units import number_hint, seconds_hint
from proxy.errors import KeyPath, SettingsError, suggestion

T = TypeVar("T")

_PLACE: Final = re.compile(r"^(?P<problem>.*?)(?: - at (?P<inside>`key` in )?`\$(?P<path>.*)`)?$", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
"""msgspec's messages end with the place of the problem, such as `$.listeners[0].port`."""
_NAMES: Final = {
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
    "str": "text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
}
"""Plain names for the types that msgspec's messages call by their names in JSON and Python."""


def convert(value: object, kind: type[T]) -> T:
    """Convert `value` to `kind`, a msgspec Struct. Raises SettingsError with the key that does not match."""
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise _explain(str(error), value, kind) from error


def unknown(key: KeyPath, known: Iterable[str]) -> SettingsError:
    """The error for a key whose last part is not one of `known`."""
    return SettingsError(f"unknown key; {suggestion(str(key[-1]), known)}", key)


def show(value: object) -> str:
    """A value of the file as an error message shows it: shortened, and a mapping or list without content."""
    if isinstance(value, dict | list):
        return ("a " if value else "an empty ") + ("mapping" if isinstance(value, dict) else "list")
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _explain(message: str, value: object, kind: type) -> SettingsError:
    """Translate a message of msgspec to an error in the file's terms, with the key."""
    match = _PLACE.match(message)
    assert match is not None
    problem = match["problem"]
    key: KeyPath = tuple(name or int(place) for name, place in _STEP.findall(match["path"] or ""))
    found, shape = _follow(value, inspect.type_info(kind), key)
    quoted = re.search(r"`(.*)`", problem)
    if problem.startswith("Object contains unknown field") and quoted:
        return unknown((*key, quoted[1]), _names(shape))
    if problem.startswith("Object missing required field") and quoted:
        return SettingsError("required", (*key, quoted[1]))
    if match["inside"]:
        if isinstance(shape, inspect.DictType) and isinstance(shape.key_type, inspect.IntType):
            return SettingsError(f"its keys have to be numbers; {_expected(problem)}", key)
        return SettingsError("its keys have to be text; put them in quotes", key)
    if isinstance(shape, inspect.UnionType):
        expected = " or ".join(map(_alternative, shape.types))
        quoted_switch = found in ("on", "off") and any(isinstance(t, inspect.BoolType) for t in shape.types)
        hint = f"; write {found} without quotes" if quoted_switch else ""
        return SettingsError(f"expected {expected}, got {show(found)}{hint}", key)
    if isinstance(shape, inspect.LiteralType):
        return SettingsError(f"expected one of {', '.join(map(str, shape.values))}, got {show(found)}", key)
    return SettingsError(f"{_expected(problem)}, got {show(found)}{_hint(problem, found, key)}", key)


def _hint(problem: str, found: object, key: KeyPath) -> str:
    """What to write instead, if that is clear."""
    if problem.startswith("Expected `array`") and _is_one(found):
        return f"; write [{found}]"
    if problem.startswith("Expected `str") and isinstance(found, int | float):
        return "; put it in quotes"
    if problem.startswith(("Expected `int`", "Expected `float`")):
        return seconds_hint(found) if key and str(key[-1]).endswith("_seconds") else number_hint(found)
    return ""


def _is_one(value: object) -> bool:
    """Whether a value is probably meant as the only item of a list."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def _expected(problem: str) -> str:
    """Translate `Expected `array` of length >= 1` to `expected a list of length >= 1`."""
    text = problem.split(", got ")[0]
    # A key with a default of None may be absent; nobody writes null.
    text = text.replace(" | null`", "`")
    text = re.sub(r"`(\w+)`", lambda quoted: _NAMES.get(quoted[1], quoted[1]), text)
    return text[:1].lower() + text[1:]


def _alternative(shape: inspect.Type) -> str:
    """One of the types that a key accepts, for an error message."""
    if isinstance(shape, inspect.BoolType):
        return "on or off"
    if isinstance(shape, inspect.LiteralType):
        return " or ".join(map(str, shape.values))
    if isinstance(shape, inspect.IntType):
        bounded = shape.ge is not None and shape.le is not None
        return f"an integer from {shape.ge} to {shape.le}" if bounded else "an integer"
    return "a mapping"


def _names(shape: inspect.Type) -> list[str]:
    return [field.encode_name for field in shape.fields] if isinstance(shape, inspect.StructType) else []


def _follow(value: Any, shape: inspect.Type, key: KeyPath) -> tuple[object, inspect.Type]:
    """The value at the key, and the required type."""
    for part in key:
        value = value[part]
        if isinstance(shape, inspect.StructType):
            shape = next(field.type for field in shape.fields if field.encode_name == part)
        elif isinstance(shape, inspect.VarTupleType):
            shape = shape.item_type
        elif isinstance(shape, inspect.DictType):
            shape = shape.value_type
        if isinstance(shape, inspect.UnionType):
            shape = _member(shape, value)
    return value, shape


def _member(shape: inspect.UnionType, value: object) -> inspect.Type:
    """The member of a union that a value was probably meant for; the union itself if there are several."""
    members = [member for member in shape.types if not isinstance(member, inspect.NoneType)]
    if isinstance(value, dict):
        members = [member for member in members if isinstance(member, inspect.StructType | inspect.DictType)]
    return members[0] if len(members) == 1 else shape
