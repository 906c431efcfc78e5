"""Quotas as a file: `quotas: {clients: [{entity: {user: alice}, producer_byte_rate: 1048576}]}`.

The format is that of the proxy's configuration, of which only quotas.clients is read here, in YAML or JSON.
The names and values of quotas are validated by the server, so a file can have those of any version.
"""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from proxy.cli.quotas.entity import TYPES, Entity, Place, Quotas, make_entity, show_entity, sort_key
from proxy.cli.quotas.values import EXPIRES_AT_MS, parse_number, plain_number
from proxy.config import document
from proxy.config.convert import show, unknown
from proxy.errors import KeyPath, SettingsError, spell
from proxy.quota.identity import DEFAULT_IN_YAML
from proxy.store.yaml_file import ENTITY, EXPIRES, SCOPE

CLIENTS: Final[KeyPath] = ("quotas", "clients")
_NOT_IN_YAML: Final = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows unescaped in a string, and that YAML forbids or reads as line breaks."""


@dataclass(frozen=True, slots=True)
class QuotaFile:
    """The content of a file: its lasting quotas, the places of its temporary ones (with `expires`), the
    entities that have a `scope`, and whether it has `quotas.scope`.
    """

    lasting: Quotas
    temporary: frozenset[Place]
    scoped: frozenset[Entity] = frozenset()
    has_default_scope: bool = False


def read_quotas(path: Path) -> QuotaFile:
    """Read the file. Raises SettingsError with the file, the line and the key."""
    file = document.read(path)
    try:
        read = _read_clients(_clients(file.value))
    except SettingsError as error:
        raise file.locate(error) from error
    return replace(read, has_default_scope=_has(file.value, (CLIENTS[0], SCOPE)))


def to_yaml(quotas: Quotas) -> str:
    """The quotas as YAML, in a stable order: two exports differ only where quotas differ."""
    return yaml.dump(
        _shape(quotas),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=2**30,
    )


def to_json(quotas: Quotas) -> str:
    """The quotas as JSON, which is valid YAML too."""
    text = json.dumps(_shape(quotas), indent=2, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def has_shape(entity: Entity) -> bool:
    """Whether a file can represent the entity: `<default>` as a real name is impossible."""
    return all(name != DEFAULT_IN_YAML for _, name in entity)


def _clients(root: object) -> list[object]:
    value = root
    for place, part in enumerate(CLIENTS):
        if not isinstance(value, dict):
            raise SettingsError(f"expected a mapping, got {show(value)}", CLIENTS[:place])
        if part not in value:
            raise SettingsError("required; write `clients: []` for a file without quotas", CLIENTS)
        value = value[part]
    if not isinstance(value, list):
        raise SettingsError(f"expected a list, got {show(value)}", CLIENTS)
    return value


def _has(value: object, key: KeyPath) -> bool:
    for part in key:
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True


def _read_clients(clients: list[object]) -> QuotaFile:
    quotas: dict[bool, Quotas] = {False: {}, True: {}}
    places: dict[tuple[Entity, bool], int] = {}
    scoped: set[Entity] = set()
    for place, entry in enumerate(clients):
        at = (*CLIENTS, place)
        if not isinstance(entry, dict):
            raise SettingsError(f"expected a mapping, got {show(entry)}", at)
        entity = _read_entity(entry, (*at, ENTITY))
        temporary = EXPIRES in entry
        first = places.setdefault((entity, temporary), place)
        if first != place:
            other = spell((*CLIENTS, first))
            problem = f"{other} is for {show_entity(entity)} as well; merge the two entries"
            raise SettingsError(problem, (*at, ENTITY))
        values = _read_values(entry, at)
        if SCOPE in entry:
            scoped.add(entity)
        if values:
            quotas[temporary][entity] = values
    temporary_places = ((entity, key) for entity, values in quotas[True].items() for key in values)
    return QuotaFile(quotas[False], frozenset(temporary_places), frozenset(scoped))


def _read_entity(entry: dict[object, object], at: KeyPath) -> Entity:
    if ENTITY not in entry:
        raise SettingsError("required", at)
    parts = entry[ENTITY]
    if not isinstance(parts, dict) or not parts:
        raise SettingsError(f"expected a mapping of {', '.join(TYPES)}, got {show(parts)}", at)
    named: list[tuple[str, str | None]] = []
    for kind, name in parts.items():
        if kind not in TYPES:
            raise unknown((*at, str(kind)), TYPES)
        if not isinstance(name, str) or not name:
            advice = f"put the name in quotes, or write {DEFAULT_IN_YAML} for the default entity"
            raise SettingsError(f"expected text, got {show(name)}; {advice}", (*at, kind))
        named.append((kind, None if name == DEFAULT_IN_YAML else name))
    return make_entity(named)


def _read_values(entry: dict[object, object], at: KeyPath) -> dict[str, float]:
    values: dict[str, float] = {}
    for key, value in entry.items():
        if key in (ENTITY, EXPIRES, SCOPE):
            continue
        if not isinstance(key, str) or not key:
            raise SettingsError(f"expected the name of a quota, got {show(key)}", at)
        if key == EXPIRES_AT_MS:
            raise SettingsError(f"not allowed in a file; set {EXPIRES} to a time instead", (*at, key))
        try:
            values[key] = parse_number(value)
        except ValueError as error:
            raise SettingsError(f"{error}, got {show(value)}", (*at, key)) from error
    if not values and SCOPE not in entry:
        raise SettingsError("no quota; remove the entry, or add a quota such as producer_byte_rate", at)
    return values


class _Line(dict[str, str]):
    """A mapping that is written on one line."""


def _shape(quotas: Quotas) -> dict[str, Any]:
    clients = [
        {
            ENTITY: _Line((kind, DEFAULT_IN_YAML if name is None else name) for kind, name in entity),
            **{key: plain_number(value) for key, value in sorted(quotas[entity].items())},
        }
        for entity in sorted(quotas, key=sort_key)
    ]
    return {"quotas": {"clients": clients}}


def _represent_line(dumper: yaml.SafeDumper, line: _Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", line, flow_style=True)


_Dumper: Final[Any] = type(
    "_Dumper",
    # libyaml writes several times as fast, and is in every wheel of PyYAML.
    (getattr(yaml, "CSafeDumper", yaml.SafeDumper),),
    {"ignore_aliases": lambda self, data: True},
)
_Dumper.add_representer(_Line, _represent_line)
