"""Update the tables of docs/configuration.md from the settings and the kinds of quota.

    .venv/bin/python docs/configuration_table.py

A test fails if the page has other tables.
"""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec.inspect import (
    BoolType,
    DictType,
    Field,
    FloatType,
    IntType,
    LiteralType,
    NoneType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
)

from proxy.config.settings import Settings
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.resources import LONG

PAGE = Path(__file__).with_name("configuration.md")
KEYS = "| key | takes | default | meaning |\n|---|---|---|---|"
QUOTAS = "| quota | takes | meaning |\n|---|---|---|"
CONFIGS = "| config | of | takes | default | meaning |\n|---|---|---|---|---|"


def key_rows(kind: type = Settings, prefix: str = "") -> Iterator[str]:
    """Yield a row for each key, depth first, in the order of the file."""
    shape = msgspec.inspect.type_info(kind)
    assert isinstance(shape, StructType)
    meanings = docstrings(kind)
    for field in shape.fields:
        key = prefix + field.encode_name
        inner = field.type.item_type if isinstance(field.type, VarTupleType) else field.type
        if isinstance(inner, UnionType):
            inner = next((member for member in inner.types if isinstance(member, StructType)), inner)
        if isinstance(inner, StructType):
            yield from key_rows(inner.cls, key + ("[]." if isinstance(field.type, VarTupleType) else "."))
        else:
            yield f"| `{key}` | {takes(field.type)} | {default(field)} | {meanings[field.name]} |"


def quota_rows() -> Iterator[str]:
    """Yield a row for each quota, by kind."""
    for kind in load_kinds():
        for key in kind.keys:
            yield f"| `{key.name}` | {key.type} | {key.help} |"


def config_rows() -> Iterator[str]:
    """Yield a row for each config of topics and brokers, by kind."""
    for kind in load_kinds():
        for key in kind.configs:
            takes = " or ".join(f"`{choice}`" for choice in key.choices) or key.type
            takes += f", {key.least} or more" if key.type == LONG else ""
            shown = f"`{key.default}`" if key.default else ""
            yield f"| `{key.name}` | {key.resource} | {takes} | {shown} | {key.documentation} |"


def docstrings(kind: type) -> dict[str, str]:
    """Return each field's docstring: the string literal after the field in the source."""
    body = next(
        node for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef)
    ).body
    return {
        str(field.target.id): " ".join(str(below.value.value).split())
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
    }


def takes(kind: Type) -> str:
    """Describe the values that a key takes."""
    if isinstance(kind, UnionType):
        members = [member for member in kind.types if not isinstance(member, NoneType)]
        return " or ".join(sorted(map(takes, members)))
    if isinstance(kind, DictType):
        return "a mapping"
    if isinstance(kind, LiteralType):
        return " or ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, BoolType):
        return "true or false"
    if isinstance(kind, IntType | FloatType):
        lowest = (
            f"above {kind.gt}" if kind.gt is not None else f"{kind.ge}" if kind.le else f"{kind.ge} or more"
        )
        highest = f" to {kind.le}" if kind.le else ""
        return ("integer, " if isinstance(kind, IntType) else "number, ") + lowest + highest
    return "list" if isinstance(kind, VarTupleType) else "text"


def default(field: Field) -> str:
    """Return the default value of a key."""
    if field.required:
        return "required"
    if isinstance(field.default, bool):
        return str(field.default).lower()
    return "" if field.default in (None, "", (), msgspec.NODEFAULT) else f"`{field.default}`"


def tables() -> list[str]:
    """Return the tables, each without a trailing newline."""
    return [
        "\n".join([KEYS, *key_rows()]),
        "\n".join([QUOTAS, *quota_rows()]),
        "\n".join([CONFIGS, *config_rows()]),
    ]


def with_tables(page: str) -> str:
    """Return the page with its tables replaced by those of tables() with the same headers."""
    for table in tables():
        head = table.splitlines()[0]
        start = page.index(head)
        page = page[:start] + table + page[page.index("\n\n", start) :]
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
