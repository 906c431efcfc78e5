"""The layout of requests, as far as the proxy reads them to look for keys."""

from typing import Final, final

from mypy_extensions import i64 as native

LAST: Final = 1 << 15
"""Above every version."""
_FIXED: Final = {"b": 1, "h": 2, "i": 4, "q": 8, "u": 16}
STRUCTURES: Final[native] = 0
STRING: Final[native] = 1
BYTES: Final[native] = 2
NUMBERS: Final[native] = 3
INT8: Final[native] = 4
INT32: Final[native] = 5
UUID: Final[native] = 6
STRINGS: Final[native] = 7
_OTHER: Final[native] = 8
_KINDS: Final[dict[str, native]] = {
    "{": STRUCTURES,
    "s": STRING,
    "B": BYTES,
    "*": NUMBERS,
    "b": INT8,
    "i": INT32,
    "u": UUID,
}


@final
class Field:
    """A field of a message, in the versions from `since` to `until`."""

    __slots__ = ("fields", "keys", "kind", "nests", "since", "size", "until")

    def __init__(self, kind: str, since: native, until: native, keys: native, fields: list["Field"]) -> None:
        self.kind: Final[native] = STRINGS if kind == "*s" else _KINDS.get(kind[0], _OTHER)
        """b, h, i, q, u: of a fixed size; s: string; B: bytes; *: an array of `size` bytes each; *s: an array
        of strings; {: an array of structures.
        """
        self.since: Final[native] = since
        self.until: Final[native] = until
        self.size: Final[native] = _FIXED.get(kind[-1], 0)
        self.keys: Final[native] = keys
        """{: how many of `fields`, from the first, are the key; 0 for an array that is a list."""
        self.fields: Final = fields
        self.nests: Final = any(part.keys > 0 for part in fields)
        """{: whether its elements have arrays with keys."""


@final
class RequestLayout:
    """The fields of a request up to the last one that is read."""

    __slots__ = ("fields", "flexible_from", "newest")

    def __init__(self, newest: int, flexible_from: int, fields: str) -> None:
        self.newest: Final = newest
        self.flexible_from: Final = flexible_from
        self.fields: Final = _parse(fields.split())


def _parse(words: list[str]) -> list[Field]:
    """Parse fields: `i` or `s@3+` or `s@-12`, and `{1 ... }` for an array with one key field."""
    stack: list[list[Field]] = [[]]
    heads: list[str] = []
    for word in words:
        if word.startswith("{"):
            heads.append(word)
            stack.append([])
        elif word == "}":
            fields = stack.pop()
            head = heads.pop()
            keys, _, versions = head[1:].partition("@")
            since, until = _versions(versions)
            stack[-1].append(Field("{", since, until, int(keys), fields))
        else:
            kind, _, versions = word.partition("@")
            since, until = _versions(versions)
            stack[-1].append(Field(kind, since, until, 0, []))
    return stack[0]


def _versions(words: str) -> tuple[int, int]:
    if not words:
        return 0, LAST
    return (0, int(words[1:])) if words.startswith("-") else (int(words[:-1]), LAST)
