"""YAML documents that can tell the line of a key, and that reject duplicate keys.

PyYAML silently uses the last of two equal keys, although the first looks as if it were in effect. The line of
a key is looked up in the parsed nodes when an error needs it.
"""

import os
from contextlib import suppress
from pathlib import Path

import yaml

from proxy import bounded_yaml
from proxy.config.yaml import plain_entries
from proxy.errors import KeyPath, SettingsError


class Document:
    """A parsed YAML file. `value` is its content as plain Python values."""

    def __init__(self, file: Path, text: str, value: object) -> None:
        self.file = file
        self.value = value
        self._text = text

    def line(self, key: KeyPath) -> int | None:
        """Line (from 1) of the key, or of its closest parent in the file; None for neither.

        The text is parsed again for it: only an error needs a line, and the nodes take much memory.
        """
        node, line = bounded_yaml.compose(self._text), None
        for part in key:
            found = _child(node, part)
            if found is None:
                break
            line, node = found
        return line

    def locate(self, error: SettingsError) -> SettingsError:
        """The error with this file and the line of its key."""
        return error.at(self.file, self.line(error.key))


def read(file: Path) -> Document:
    """Parse a file with one YAML document. Raises SettingsError if it cannot be read or is not valid YAML."""
    text = ""
    try:
        text = bounded_yaml.read_text(file)
        value = _parse(text, file)
    except OSError as error:
        raise SettingsError(f"cannot read the file: {_why(error, file)}", file=file) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"not UTF-8 text: {error.reason} at byte {error.start}", file=file) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        invalid = "" if isinstance(error, bounded_yaml.OutOfBounds) else "not valid YAML: "
        said = error.problem or error.context or ""
        if said.startswith("but ") and error.context:
            said = f"{error.context}, {said}"
        problem = f"{invalid}{said}{_hint(text, mark)}"
        raise SettingsError(problem, file=file, line=line) from error
    except yaml.YAMLError as error:
        raise SettingsError(f"not valid YAML: {error}", file=file) from error
    return Document(file, text, value)


def _parse(text: str, file: Path) -> object:
    """The value of a text. Raises SettingsError for a duplicate key, or a yaml.YAMLError."""
    rest, taken = plain_entries.take(text)
    if taken:
        # Errors are found again below, with the right lines.
        with suppress(SettingsError, yaml.YAMLError):
            value = _parse_all(rest, file)
            if plain_entries.put_back(value, taken):
                return value
    return _parse_all(text, file)


def _parse_all(text: str, file: Path) -> object:
    root = bounded_yaml.compose(text)
    _reject_duplicates(root, file)
    return bounded_yaml.construct(root)


def _why(error: OSError, file: Path) -> str | None:
    """The system's reason, with what it omits: the working directory, and the user."""
    if isinstance(error, FileNotFoundError) and not file.is_absolute():
        return f"{error.strerror} (relative to {Path.cwd()})"
    if isinstance(error, PermissionError):
        return f"{error.strerror} (the process runs as user id {os.geteuid()})"
    return error.strerror


def _hint(text: str, mark: yaml.Mark | None) -> str:
    """The column, and an explanation for tabs, which YAML's message does not mention."""
    if mark is None:
        return ""
    place = f" (column {mark.column + 1})"
    line = text.splitlines()[mark.line : mark.line + 1]
    if line and line[0][mark.column : mark.column + 1] == "\t":
        return f"{place}: found a tab; indent with spaces"
    return place


def _child(node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == str(part):
                return name.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        value = node.value[part]
        return value.start_mark.line + 1, value
    return None


def _reject_duplicates(root: yaml.Node | None, file: Path) -> None:
    """Raise SettingsError for a key that occurs twice in a mapping."""
    found = bounded_yaml.repeated_key(root)
    if found is not None:
        problem = f"duplicate key, first on line {found.first}; keep one of them"
        raise SettingsError(problem, found.path, file, found.second)
