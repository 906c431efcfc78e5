"""Entities of the admin protocol: parts with a type and a name; a null name is the default entity.

Unlike the proxy's QuotaEntity, this accepts any entity that a server reports.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from proxy.quota.identity import CLIENT_TYPES, DEFAULT_IN_YAML
from proxy.quota.limits.resources import BROKER, TOPIC

TYPES: Final = (*CLIENT_TYPES, TOPIC, BROKER)
"""The entity types of client quotas, and the resources whose configs are quotas, in display order."""
CLIENTS: Final = "clients"
TOPICS: Final = "topics"
BROKERS: Final = "brokers"
SECTIONS: Final = (CLIENTS, TOPICS, BROKERS)
"""The keys below `quotas` in a file."""

Entity = tuple[tuple[str, str | None], ...]
"""(type, name) of each part, in the order of TYPES; the name is None for Kafka's default entity."""
Place = tuple[Entity, str]
"""One quota: its entity and its key."""
Value = float | str
"""A client quota has a number; a config of a topic or a broker has a text."""
Quotas = dict[Entity, dict[str, Value]]
"""Each entity's quotas: the key of AlterClientQuotas or the name of the config, and its value."""

_PLAIN: Final = re.compile(r"[\w@./:+=*%-]*\w[\w@./:+=*%-]*")


def type_order(kind: str) -> tuple[int, str]:
    """Sort key of an entity type: the order of TYPES, then unknown types by name."""
    return (TYPES.index(kind) if kind in TYPES else len(TYPES), kind)


def make_entity(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """An entity of these parts. Parts are sorted, so that equal entities compare equal."""
    return tuple(sorted(parts, key=lambda part: type_order(part[0])))


def section(entity: Entity) -> str:
    """The key of SECTIONS under which a file has the entity."""
    return {TOPIC: TOPICS, BROKER: BROKERS}.get(entity[0][0], CLIENTS) if entity else CLIENTS


def of_section(quotas: Quotas, *sections: str) -> Quotas:
    """The quotas of these sections."""
    return {entity: values for entity, values in quotas.items() if section(entity) in sections}


def sort_key(entity: Entity) -> tuple[object, ...]:
    """Sort key: users, client ids, addresses, topics, brokers; names before the default entity."""
    return tuple((*type_order(kind), name is None, *_name_key(kind, name or "")) for kind, name in entity)


def _name_key(kind: str, name: str) -> tuple[int, str]:
    return (int(name) if kind == BROKER and name.isdigit() else 0, name)


def show_entity(entity: Entity) -> str:
    """The entity as text: `user alice, client-id <default>`."""
    return ", ".join(f"{kind} {show_name(name)}" for kind, name in entity)


def show_parts(parts: Mapping[str, str]) -> str:
    """As show_entity(), of parts as in YAML, where the name of the default entity is `<default>`."""
    return show_entity(
        tuple((kind, None if name == DEFAULT_IN_YAML else name) for kind, name in parts.items())
    )


def show_name(name: str | None) -> str:
    """A name as text, quoted if it is ambiguous or has control characters; `<default>` for None."""
    if name is None:
        return DEFAULT_IN_YAML
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=not name.isprintable())
