"""YAML within bounds: a parsed file costs memory in proportion to its size, and cannot end the process.

libyaml composes nested values by recursion in C: some 10,000 levels overflow the stack and end the process
with SIGSEGV. Aliases and merge keys can stand for exponentially many values. So the events of the text,
which libyaml produces without recursion, are checked first. This adds a sixth to the time of reading.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

MAX_BYTES: Final = 64 << 20
"""The largest file. A YAML parser takes some 70 times as much memory as a file has."""
MAX_DEPTH: Final = 64
"""Levels of nested lists and mappings. The configuration file has fewer than ten."""
MAX_REPEATED: Final = 10
"""Aliases may multiply the number of values in the file by this."""
ALWAYS_REPEATED: Final = 10_000
"""Number of values by which aliases may add to any file."""
MAX_NUMBER_CHARACTERS: Final = 1000
"""YAML 1.1 has numbers to the base of 60, whose cost is quadratic. Python shows at most 4,300 digits."""

# libyaml reads several times as fast, and is in every wheel of PyYAML.
_LIBYAML: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class OutOfBounds(yaml.MarkedYAMLError):
    """The text is too large or too deep. `problem` says what is allowed, `problem_mark` where, if known."""


class RepeatedKey(NamedTuple):
    """A key that occurs twice in a mapping: its path from the root, and the lines (from 1)."""

    path: tuple[str | int, ...]
    first: int
    second: int


def _out_of_bounds(problem: str, mark: Any = None) -> OutOfBounds:
    return OutOfBounds(problem=problem, problem_mark=mark)


def _too_deep(mark: Any) -> OutOfBounds:
    return _out_of_bounds(f"nested deeper than {MAX_DEPTH} levels", mark)


class _Loader(_LIBYAML):  # type: ignore[misc]
    """The safe loader, with a limit for numbers."""


def _number(loader: Any, node: yaml.ScalarNode) -> object:
    if len(node.value) > MAX_NUMBER_CHARACTERS:
        problem = f"a number of more than {MAX_NUMBER_CHARACTERS} characters; put a text between quotes"
        raise _out_of_bounds(problem, node.start_mark)
    if node.tag.endswith(":int"):
        return loader.construct_yaml_int(node)
    return loader.construct_yaml_float(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _number)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)


def read_text(path: Path) -> str:
    """The text of the file. Raises OSError, UnicodeDecodeError, or OutOfBounds if it is too large."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise _out_of_bounds(f"the file is larger than {MAX_BYTES >> 20} MiB; split it")
    return content.decode("utf-8")


def compose(text: str) -> yaml.Node | None:
    """The root node of the text's only document; None if it is empty.

    Raises OutOfBounds, or another yaml.YAMLError if the text is not valid YAML.
    """
    _check(text)
    loader = _Loader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
        return root
    finally:
        loader.dispose()


def repeated_key(root: yaml.Node | None) -> RepeatedKey | None:
    """The first key found that occurs twice in a mapping; None if there is none. PyYAML uses the last value.

    An aliased node is visited once.
    """
    waiting: list[tuple[tuple[str | int, ...], yaml.Node | None]] = [((), root)]
    seen: set[int] = set()
    while waiting:
        path, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [((*path, place), item) for place, item in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            lines: dict[tuple[str, str], int] = {}
            for name, value in node.value:
                text, line = str(name.value), name.start_mark.line + 1
                first = lines.get((name.tag, text))
                if first is not None:
                    return RepeatedKey((*path, text), first, line)
                lines[name.tag, text] = line
                waiting.append(((*path, text), value))
    return None


def construct(root: yaml.Node | None) -> object:
    """The value of a node of compose(). Raises yaml.YAMLError."""
    if root is None:
        return None
    loader = _Loader("")
    try:
        value: object = loader.construct_document(root)
        return value
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
        # Such as a date in month 13, or `!!bool maybe`: PyYAML lets these exceptions pass.
        raise yaml.YAMLError(f"a value does not fit its type: {error!r}") from error
    finally:
        loader.dispose()


def _check(text: str) -> None:
    """Raises OutOfBounds, or another yaml.YAMLError up to where the text is not valid YAML."""
    parser = _LIBYAML(text)
    try:
        _check_events(parser)
    except yaml.scanner.ScannerError as error:
        # libyaml 0.2.6 scans ahead of its events, and has its own limit of 1,000 levels.
        if error.problem == "exceeded maximum nesting depth":
            raise _too_deep(error.problem_mark) from error
        raise
    finally:
        parser.dispose()


def _check_events(parser: Any) -> None:
    values = total = 0
    sizes: dict[str, int] = {}
    """The number of values that each anchor stands for."""
    open_values: list[tuple[str | None, int]] = []
    """The anchor of each open list or mapping, and the total before it."""
    while parser.check_event():
        event: Any = parser.get_event()
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_values):
                raise _out_of_bounds(f"*{event.anchor} contains itself", event.start_mark)
            total += sizes.get(event.anchor or "", 1)
            if total > values * (1 + MAX_REPEATED) + ALWAYS_REPEATED:
                problem = f"aliases repeat more than {MAX_REPEATED} times as many values as the file has"
                raise _out_of_bounds(problem, event.start_mark)
        elif isinstance(event, yaml.CollectionStartEvent):
            open_values.append((event.anchor, total))
            if len(open_values) > MAX_DEPTH:
                raise _too_deep(event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_values.pop()
            if anchor is not None:
                sizes[anchor] = total - before + 1
        elif isinstance(event, yaml.ScalarEvent) and event.anchor is not None:
            sizes[event.anchor] = 1
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            values += 1
            total += 1
