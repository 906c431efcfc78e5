"""Client quotas in YAML: a list of `{entity: {user: ..., client-id: ...}, QUOTA: VALUE, ...}`.

The kinds in proxy/quota/kinds define the quotas and their values. An entry with `expires` is temporary; its
entity can have a lasting entry as well. `scope` is that of the entity; an entry may have it alone, for the
quotas that tools set.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Final

from proxy.config.yaml.convert import show, unknown
from proxy.config.yaml.units import number_hint
from proxy.errors import KeyPath, SettingsError, spell
from proxy.quota.identity import CLIENT_ID, CLIENT_TYPES, IP, USER, QuotaEntity, parse_entity
from proxy.quota.limits.scopes import BROKER_SCOPE, CLUSTER_SCOPE
from proxy.quota.quota import QuotaKey
from proxy.store.layers import ClientLayer, Temporary

ENTITY: Final = "entity"
EXPIRES: Final = "expires"
SCOPE: Final = "scope"
_SCOPES: Final = (BROKER_SCOPE, CLUSTER_SCOPE)
SHARED_AT_MOST: Final = 1000
"""Different combinations of values whose entities share a dict."""


def read_clients(
    clients: Sequence[Mapping[str, object]], quota_keys: Mapping[str, QuotaKey], at: KeyPath
) -> ClientLayer:
    """The quotas of the entries, which stand at the key `at`. `quota_keys` are the known quotas by name.

    The layer is read-only: many entities have equal quotas, and share a dict. Raises SettingsError for an
    entry that is not valid.
    """
    layer = ClientLayer()
    shared: dict[tuple[tuple[str, float], ...], dict[str, float | None]] = {}
    for place, entry in enumerate(clients):
        entity = _entity(entry, (*at, place))
        expires_at_ms = _expiry(entry, (*at, place, EXPIRES))
        if entity in (layer.lasting if expires_at_ms is None else layer.temporary):
            first = _first(clients, entity, EXPIRES in entry)
            problem = f"{spell((*at, first))} is for {entity} as well; merge the two entries"
            raise SettingsError(problem, (*at, place, ENTITY))
        values = _values(entry, entity, quota_keys, (*at, place))
        if expires_at_ms is not None:
            for name, value in values.items():
                layer.set_temporary(entity, name, Temporary(value, expires_at_ms))
        elif values:
            # Dicts for 100,000 entities would take 24 MB.
            key = tuple(values.items())
            found = shared.get(key)
            if found is None:
                found = dict(values)
                if len(shared) < SHARED_AT_MOST:
                    shared[key] = found
            layer.lasting[entity] = found
    return layer


def read_scopes(clients: Sequence[Mapping[str, object]], at: KeyPath) -> dict[QuotaEntity, str]:
    """The scopes of the entities that have their own, of entries that read_clients() has found valid.

    Raises SettingsError for a scope that is not valid.
    """
    scopes: dict[QuotaEntity, str] = {}
    for place, entry in enumerate(clients):
        if SCOPE not in entry:
            continue
        key = (*at, place, SCOPE)
        scope = entry[SCOPE]
        if scope not in _SCOPES:
            raise SettingsError(f"expected one of {', '.join(_SCOPES)}, got {show(scope)}", key)
        entity = _entity(entry, (*at, place))
        if scopes.setdefault(entity, str(scope)) != scope:
            raise SettingsError(f"another entry for {entity} has the scope {scopes[entity]}", key)
    return scopes


def _first(clients: Sequence[Mapping[str, object]], entity: QuotaEntity, expires: bool) -> int:
    """The index of the first entry for an entity, among those with or without an expiry."""
    return next(
        place
        for place, entry in enumerate(clients)
        if (EXPIRES in entry) == expires and _entity(entry, ()) == entity
    )


def _entity(entry: Mapping[str, object], at: KeyPath) -> QuotaEntity:
    """Read the entity of an entry. Raises SettingsError with the key."""
    key = (*at, ENTITY)
    parts = entry.get(ENTITY)
    if ENTITY not in entry:
        raise SettingsError("required", key)
    if not isinstance(parts, dict):
        expected = f"expected a mapping of {USER}, {CLIENT_ID} or both, or of {IP}"
        raise SettingsError(f"{expected}, got {show(parts)}", key)
    for part, name in parts.items():
        if part not in CLIENT_TYPES:
            raise unknown((*key, str(part)), CLIENT_TYPES)
        if not isinstance(name, str):
            raise SettingsError(f"expected text, got {show(name)}; put the name in quotes", (*key, part))
    try:
        return parse_entity(parts)
    except ValueError as error:
        raise SettingsError(str(error), key) from error


def _expiry(entry: Mapping[str, object], key: KeyPath) -> int | None:
    """The expiry of the entry in ms since the epoch. YAML has converted what looks like a time."""
    value = entry.get(EXPIRES)
    if EXPIRES not in entry:
        return None
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return round(value.timestamp() * 1000)
    if isinstance(value, date):
        raise SettingsError(f"{value} has no time zone; write it as 2030-12-31T23:00:00Z", key)
    raise SettingsError(f"expected a time such as 2030-12-31T23:00:00Z, got {show(value)}", key)


def _values(
    entry: Mapping[str, object], entity: QuotaEntity, quota_keys: Mapping[str, QuotaKey], at: KeyPath
) -> dict[str, float]:
    """Read the quotas of an entry. Raises SettingsError with the key."""
    values: dict[str, float] = {}
    for name, value in entry.items():
        if name in (ENTITY, EXPIRES, SCOPE):
            continue
        quota_key = quota_keys.get(name)
        if quota_key is None:
            raise unknown((*at, name), (ENTITY, EXPIRES, SCOPE, *quota_keys))
        if value is None:
            raise SettingsError("expected a number greater than 0, got nothing", (*at, name))
        problem = quota_key.misplaced(entity) or quota_key.problem(value)
        if problem:
            raise SettingsError(problem + number_hint(value), (*at, name))
        assert isinstance(value, (int, float))
        values[name] = float(value)
    if not values and SCOPE not in entry:
        raise SettingsError(f"no quota; expected at least one of {', '.join(sorted(quota_keys))}", at)
    return values
