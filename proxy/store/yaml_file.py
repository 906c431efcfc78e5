"""Quotas as YAML has them: a list of `{entity: {user: ..., client-id: ...}, QUOTA: VALUE, ...}`.

Which quotas there are, and which values they take, is what the kinds in proxy/quota/kinds say.
"""

from collections.abc import Mapping, Sequence

from proxy.config_file.convert import show
from proxy.config_file.not_yet import unknown
from proxy.errors import Key, SettingsError, spell
from proxy.quota.identity import CLIENT_ID, USER, QuotaEntity, parse_entity
from proxy.quota.kinds import load_kinds
from proxy.quota.quota import QuotaKey

ENTITY = "entity"


def read_clients(clients: Sequence[Mapping[str, object]], at: Key) -> dict[QuotaEntity, dict[str, float]]:
    """Each entity with its quotas; SettingsError, with a key below `at`, for what no kind of quota takes."""
    quota_keys = {key.name: key for kind in load_kinds() for key in kind.keys}
    quotas: dict[QuotaEntity, dict[str, float]] = {}
    places: dict[QuotaEntity, int] = {}
    for place, entry in enumerate(clients):
        entity = _entity(entry, (*at, place))
        first = places.setdefault(entity, place)
        if first != place:
            problem = f"{entity} has an entry already, {spell((*at, first))}; put its quotas together"
            raise SettingsError(problem, (*at, place, ENTITY))
        quotas[entity] = _values(entry, quota_keys, (*at, place))
    return quotas


def _entity(entry: Mapping[str, object], at: Key) -> QuotaEntity:
    key = (*at, ENTITY)
    parts = entry.get(ENTITY)
    if ENTITY not in entry:
        raise SettingsError("has to be given", key)
    if not isinstance(parts, dict):
        raise SettingsError(f"expected a mapping of {USER}, {CLIENT_ID} or both, got {show(parts)}", key)
    for part, name in parts.items():
        if part not in (USER, CLIENT_ID):
            raise unknown((*key, str(part)), (USER, CLIENT_ID))
        if not isinstance(name, str):
            raise SettingsError(f"expected text, got {show(name)}; put the name in quotes", (*key, part))
    try:
        return parse_entity(parts)
    except ValueError as error:
        raise SettingsError(str(error), key) from error


def _values(entry: Mapping[str, object], quota_keys: Mapping[str, QuotaKey], at: Key) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, value in entry.items():
        if name == ENTITY:
            continue
        quota_key = quota_keys.get(name)
        if quota_key is None:
            raise unknown((*at, name), (ENTITY, *quota_keys))
        problem = quota_key.problem(value)
        if problem:
            raise SettingsError(problem, (*at, name))
        assert isinstance(value, (int, float))
        values[name] = float(value)
    if not values:
        raise SettingsError(f"has no quota; expected one of {', '.join(sorted(quota_keys))}", at)
    return values
