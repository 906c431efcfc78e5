"""The quotas of all layers, effective or not, for the console's list."""

import heapq
from typing import Any, Final

from msgspec import to_builtins

from proxy.admin.yielder import Yielder
from proxy.quota.identity import QuotaEntity
from proxy.quota.limits.resources import ConfigResource
from proxy.store.layer_report import layer_values
from proxy.store.quota_store import QuotaStore

MOST: Final = 200
"""Entities of one response."""


async def configured(store: QuotaStore, words: str) -> dict[str, Any]:
    """The entities whose names and quotas contain all of these words, up to MOST, and how many there are."""
    wanted = words.lower().split()
    found: list[tuple[str, QuotaEntity | ConfigResource]] = []
    yielder = Yielder()
    for layers in (store.client_layers, store.config_layers):
        entities: list[QuotaEntity | ConfigResource] = list(
            dict.fromkeys([*layers.file.entities(), *layers.tools.entities()])
        )
        for entity in entities:
            text = f"{entity} {' '.join(_names(store, entity))}" if wanted else str(entity)
            if all(word in text.lower() for word in wanted):
                found.append((text, entity))
            await yielder.step()
    shown = heapq.nsmallest(MOST, found, key=lambda each: each[0])
    rows = []
    for _, entity in shown:
        rows.append({"entity": _parts(entity), "quotas": _values(store, entity)})
        await yielder.step()
    return {"total": len(found), "entities": [row for row in rows if row["quotas"]]}


def _names(store: QuotaStore, entity: QuotaEntity | ConfigResource) -> list[str]:
    if isinstance(entity, QuotaEntity):
        return store.client_layers.names(entity)
    return store.config_layers.names(entity)


def _values(store: QuotaStore, entity: QuotaEntity | ConfigResource) -> Any:
    """The values of all layers, by quota."""
    if isinstance(entity, QuotaEntity):
        return to_builtins(layer_values(store.client_layers, entity, store.now_ms()))
    return to_builtins(layer_values(store.config_layers, entity, store.now_ms()))


def _parts(entity: QuotaEntity | ConfigResource) -> dict[str, str]:
    return entity.parts() if isinstance(entity, QuotaEntity) else {entity.type: entity.name}
