"""Quotas as a file: `quotas: {clients: [{entity: {user: alice}, producer_byte_rate: 1048576}],
topics: {orders: {producer.byte.rate: 1048576}}, brokers: {<default>: {...}}}`.

The format is that of the proxy's configuration, of which only these three keys are read here, in YAML or
JSON. The names and values of client quotas are validated by the server, so a file can have those of any
version. Those of topics and brokers are validated here, as the proxy validates them in its configuration.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from proxy.admin.messages.client_quotas import BACK_TO_FILE, EXPIRES_AT_MS
from proxy.cli.quotas.entity import (
    BROKERS,
    CLIENTS,
    SECTIONS,
    TOPICS,
    Entity,
    Place,
    Quotas,
    Value,
    make_entity,
    of_section,
    section,
    show_entity,
    sort_key,
)
from proxy.cli.quotas.values import parse_number, plain_number
from proxy.config.yaml import document
from proxy.config.yaml.convert import show, unknown
from proxy.config.yaml.units import number_hint
from proxy.errors import KeyPath, SettingsError, spell
from proxy.quota.identity import CLIENT_TYPES, DEFAULT_IN_YAML
from proxy.quota.limits.resources import DEFAULT_RESOURCE, FALSE, TRUE
from proxy.store.yaml_file import ENTITY, EXPIRES, SCOPE
from proxy.store.yaml_resources import read_resources

QUOTAS: Final = "quotas"
_AT: Final[KeyPath] = (QUOTAS, CLIENTS)
_NOT_IN_YAML: Final = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows unescaped in a string, and that YAML forbids or reads as line breaks."""


@dataclass(frozen=True, slots=True)
class QuotaFile:
    """The content of a file: its lasting quotas, the places of its temporary ones (with `expires`), the
    entities that have a `scope`, whether it has `quotas.scope`, and which of SECTIONS it has.
    """

    lasting: Quotas
    temporary: frozenset[Place]
    scoped: frozenset[Entity] = frozenset()
    has_default_scope: bool = False
    sections: frozenset[str] = frozenset(SECTIONS)


def read_quotas(path: Path) -> QuotaFile:
    """Read the file. Raises SettingsError with the file, the line and the key."""
    file = document.read(path)
    try:
        quotas = _sections(file.value)
        read = _read_clients(quotas.get(CLIENTS, []))
        resources = _read_resources(quotas)
    except SettingsError as error:
        raise file.locate(error) from error
    return replace(
        read,
        lasting={**read.lasting, **resources},
        has_default_scope=SCOPE in quotas,
        sections=frozenset(name for name in SECTIONS if name in quotas),
    )


def to_yaml(quotas: Quotas, sections: Collection[str] = (CLIENTS,)) -> str:
    """The quotas as YAML, in a stable order: two exports differ only where quotas differ.

    `sections` are written even if they are empty.
    """
    return yaml.dump(
        _shape(quotas, sections),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=2**30,
    )


def to_json(quotas: Quotas, sections: Collection[str] = (CLIENTS,)) -> str:
    """The quotas as JSON, which is valid YAML too."""
    text = json.dumps(_shape(quotas, sections), indent=2, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def has_shape(entity: Entity) -> bool:
    """Whether a file can represent the entity: `<default>` as a real name is impossible."""
    return all(name != DEFAULT_IN_YAML for _, name in entity)


def _sections(root: object) -> dict[str, object]:
    """The mapping `quotas`. It has one of SECTIONS at least."""
    if not isinstance(root, dict):
        raise SettingsError(f"expected a mapping, got {show(root)}")
    if QUOTAS not in root:
        raise SettingsError("required; write `quotas: {clients: []}` for a file without quotas", (QUOTAS,))
    quotas = root[QUOTAS]
    if not isinstance(quotas, dict):
        raise SettingsError(f"expected a mapping, got {show(quotas)}", (QUOTAS,))
    if not any(name in quotas for name in SECTIONS):
        advice = "write `clients: []` for a file without quotas"
        raise SettingsError(f"expected {', '.join(SECTIONS)} or some of them; {advice}", (QUOTAS,))
    return quotas


def _read_resources(quotas: dict[str, object]) -> Quotas:
    """The configs of topics and brokers, as the proxy's configuration has them."""
    named: dict[str, dict[Any, object]] = {}
    for name in (TOPICS, BROKERS):
        value = quotas.get(name, {})
        if not isinstance(value, dict):
            raise SettingsError(f"expected a mapping, got {show(value)}", (QUOTAS, name))
        named[name] = value
    for topic in named[TOPICS]:
        if not isinstance(topic, str):
            advice = "put the name of the topic in quotes"
            raise SettingsError(f"expected text, got {show(topic)}; {advice}", (QUOTAS, TOPICS, str(topic)))
    for broker in named[BROKERS]:
        if not isinstance(broker, (str, int)) or isinstance(broker, bool):
            expected = f"expected a broker's node id or {DEFAULT_IN_YAML}"
            raise SettingsError(f"{expected}, got {show(broker)}", (QUOTAS, BROKERS, str(broker)))
    if not any(named.values()):
        return {}
    # The kinds of quota take a while to import, and files of client quotas do not need them.
    from proxy.quota.config_rules import ConfigRules
    from proxy.quota.kinds import load_kinds

    layer = read_resources(named[TOPICS], named[BROKERS], ConfigRules(load_kinds()), (QUOTAS,))
    found: Quotas = {}
    for resource, values in layer.lasting.items():
        entity: Entity = ((resource.type, None if resource.name == DEFAULT_RESOURCE else resource.name),)
        found[entity] = {name: value for name, value in values.items() if value is not None}
    return found


def _read_clients(clients: object) -> QuotaFile:
    """Read the entries of quotas.clients. Raises SettingsError with the key."""
    if not isinstance(clients, list):
        raise SettingsError(f"expected a list, got {show(clients)}", _AT)
    quotas: dict[bool, Quotas] = {False: {}, True: {}}
    places: dict[tuple[Entity, bool], int] = {}
    scoped: set[Entity] = set()
    for place, entry in enumerate(clients):
        at = (*_AT, place)
        if not isinstance(entry, dict):
            raise SettingsError(f"expected a mapping, got {show(entry)}", at)
        entity = _read_entity(entry, (*at, ENTITY))
        temporary = EXPIRES in entry
        first = places.setdefault((entity, temporary), place)
        if first != place:
            other = spell((*_AT, first))
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
        raise SettingsError(f"expected a mapping of {', '.join(CLIENT_TYPES)}, got {show(parts)}", at)
    named: list[tuple[str, str | None]] = []
    for kind, name in parts.items():
        if kind not in CLIENT_TYPES:
            raise unknown((*at, str(kind)), CLIENT_TYPES)
        if not isinstance(name, str) or not name:
            advice = f"put the name in quotes, or write {DEFAULT_IN_YAML} for the default entity"
            raise SettingsError(f"expected text, got {show(name)}; {advice}", (*at, kind))
        named.append((kind, None if name == DEFAULT_IN_YAML else name))
    return make_entity(named)


def _read_values(entry: dict[object, object], at: KeyPath) -> dict[str, Value]:
    """Read the quotas of an entry. Raises SettingsError with the key."""
    values: dict[str, Value] = {}
    for key, value in entry.items():
        if key in (ENTITY, EXPIRES, SCOPE):
            continue
        if not isinstance(key, str) or not key:
            raise SettingsError(f"expected the name of a quota, got {show(key)}", at)
        if key == EXPIRES_AT_MS:
            raise SettingsError(f"not allowed in a file; set {EXPIRES} to a time instead", (*at, key))
        if key == BACK_TO_FILE:
            raise SettingsError("not allowed in a file; use `quotas set --back-to-file`", (*at, key))
        try:
            values[key] = parse_number(value)
        except ValueError as error:
            expected = f"expected a number, got {show(value)}{number_hint(value)}"
            raise SettingsError(expected, (*at, key)) from error
    if not values and SCOPE not in entry:
        raise SettingsError("no quota; remove the entry, or add a quota such as producer_byte_rate", at)
    return values


class _Line(dict[str, str]):
    """A mapping that is written on one line."""


def _shape(quotas: Quotas, sections: Collection[str]) -> dict[str, Any]:
    shaped: dict[str, Any] = {}
    written = [name for name in SECTIONS if name in sections or of_section(quotas, name)]
    for name in written:
        mine = sorted(of_section(quotas, name), key=sort_key)
        if name == CLIENTS:
            shaped[name] = [_entry(entity, quotas[entity]) for entity in mine]
        else:
            shaped[name] = {_key(entity): _configs(quotas[entity]) for entity in mine}
    return {QUOTAS: shaped}


def _entry(entity: Entity, values: dict[str, Value]) -> dict[str, Any]:
    named = _Line((kind, DEFAULT_IN_YAML if name is None else name) for kind, name in entity)
    return {ENTITY: named, **{key: _plain(value) for key, value in sorted(values.items())}}


def _key(entity: Entity) -> str | int:
    """The key of a topic or a broker in its section."""
    [(_, name)] = entity
    if name is None:
        return DEFAULT_IN_YAML
    return int(name) if section(entity) == BROKERS else name


def _configs(values: dict[str, Value]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in sorted(values.items())}


def _plain(value: Value) -> str | float | bool:
    """The value as YAML has it. Of configs, only those of type LONG are digits, and those of type BOOLEAN are
    true or false.
    """
    if not isinstance(value, str):
        return plain_number(value)
    if value in (TRUE, FALSE):
        return value == TRUE
    return int(value) if value.removeprefix("-").isdigit() else value


def _represent_line(dumper: yaml.SafeDumper, line: _Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", line, flow_style=True)


_Dumper: Final[Any] = type(
    "_Dumper",
    # libyaml writes several times as fast, and is in every wheel of PyYAML.
    (getattr(yaml, "CSafeDumper", yaml.SafeDumper),),
    {"ignore_aliases": lambda self, data: True},
)
_Dumper.add_representer(_Line, _represent_line)
