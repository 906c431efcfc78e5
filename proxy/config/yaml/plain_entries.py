"""Reads the long lists of client quotas in a YAML file much faster than a YAML parser does.

A parser takes five seconds for 100,000 entries, and 400 MB. Nearly all entries of such a list are plain:

    - entity: {user: NAME, client-id: NAME}          - entity:
      QUOTA: NUMBER                                       user: NAME
                                                        QUOTA: NUMBER

take() replaces each run of plain entries in the text by a placeholder. The parser reads the rest, and
put_back() replaces the placeholders in its result by the values of the entries. If a placeholder is not an
item of a list in the result, the run was not a list: it may be inside a text.
"""

import re
from typing import Final

_MARK: Final = "\ue000plain entries "
"""The start of each placeholder. A text that has it is left to the parser."""
LEAST_ENTRIES: Final = 1000
"""Shorter runs are left to the parser."""
NAMES_AT_MOST: Final = 1000
"""Characters of a name; longer ones are left to the parser."""

_QUOTED: Final = rf"'[ -&(-~]{{0,{NAMES_AT_MOST}}}'|\"[ !#-\[\]-~]{{0,{NAMES_AT_MOST}}}\""
_PLAIN: Final = rf"[A-Za-z][A-Za-z0-9_.-]{{0,{NAMES_AT_MOST}}}|<default>"
"""Quoted texts of printable ASCII without escapes, and plain ones."""
_NAME: Final = rf"(?:{_QUOTED}|{_PLAIN})"
_PART: Final = rf"(?:user|client-id|ip): {_NAME}"
_FLOW: Final = rf" \{{{_PART}(?:, {_PART})?\}}\n"
_PARTS: Final = re.compile(rf"(user|client-id|ip): ({_NAME})")
_NUMBER: Final = r"(?:0|[1-9][0-9]{0,18})(?:\.[0-9]{1,18})?"
"""Numbers that mean the same in YAML and in Python."""
_VALUES: Final = re.compile(rf"([a-z]+_[a-z_]+): ({_NUMBER})")
_FIRST: Final = re.compile(r"^( *)- entity:", re.MULTILINE)
_NO_TEXT: Final = frozenset({"yes", "no", "true", "false", "on", "off", "null"})
"""Plain words that YAML 1.1 does not read as text, in lower case."""
Entries = list[object]


def take(text: str) -> tuple[str, dict[str, Entries]]:
    """Return the text with a placeholder for each long run of plain entries, and the entries by placeholder.

    A text with anchors stays as it is: an alias could stand for a run.
    """
    kept: list[str] = []
    taken: dict[str, Entries] = {}
    at = 0
    first = _FIRST.search(text)
    while first is not None:
        entries, end = _run(text, first.start(), first[1])
        if len(entries) < LEAST_ENTRIES:
            end = max(end, first.end())
            kept.append(text[at:end])
        else:
            placeholder = f"{_MARK}{len(taken)}"
            taken[placeholder] = entries
            kept.append(f'{text[at : first.start()]}{first[1]}- "{placeholder}"\n')
        at = end
        first = _FIRST.search(text, at)
    kept.append(text[at:])
    rest = "".join(kept)
    return (text, {}) if _MARK in text or "&" in rest else (rest, taken)


def _run(text: str, start: int, indent: str) -> tuple[Entries, int]:
    """The plain entries from `start` on without the last one, which may go on, and where they end."""
    block = rf"\n(?P<deep>{indent}   +){_PART}\n(?:(?P=deep){_PART}\n)?"
    values = rf"(?:{indent}  [a-z]+_[a-z_]+: {_NUMBER}\n)+"
    entry = re.compile(rf"{indent}- entity:(?P<entity>{_FLOW}|{block})(?P<values>{values})")
    entries: Entries = []
    end = start
    match = entry.match(text, start)
    while match is not None:
        read = _entry(match["entity"], match["values"])
        if read is None:
            break
        entries.append(read)
        end = match.start()
        match = entry.match(text, match.end())
    return entries[:-1], end


def _entry(entity: str, values: str) -> dict[str, object] | None:
    """The value of an entry; None if the parser has to read it, such as one that has a key twice."""
    parts: dict[str, str] = {}
    names = _PARTS.findall(entity)
    for part, name in names:
        if name[0] in "'\"":
            parts[part] = name[1:-1]
        elif name.lower() in _NO_TEXT:
            return None
        else:
            parts[part] = name
    numbers = _VALUES.findall(values)
    found: dict[str, object] = {"entity": parts}
    for key, number in numbers:
        found[key] = float(number) if "." in number else int(number)
    return found if len(parts) == len(names) and len(found) == len(numbers) + 1 else None


def put_back(value: object, taken: dict[str, Entries]) -> bool:
    """Replace the placeholders in a parsed value; return whether each was an item of a list, once."""
    waiting = [value]
    found = 0
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
            runs = [item for item in inner if isinstance(item, str) and item in taken]
            if runs:
                found += len(runs)
                inner[:] = [
                    each
                    for item in inner
                    for each in (taken[item] if isinstance(item, str) and item in taken else [item])
                ]
    return found == len(taken)
