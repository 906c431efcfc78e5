"""Explains which quota applies to a client, an address, a topic or a broker, and what each layer says.

    {"quota": "producer_byte_rate", "limit": 1048576.0, "mode": "enforce", "scope": "broker",
     "entity": {"user": "alice"},
     "candidates": [{"entity": {"user": "alice"}, "values": [{"from": "tools", "value": 1048576.0}]}, ...]}

`entity` is the one whose value applies, or null if there is no limit. `candidates` are all entities with a
value that may apply, in order of precedence; `values` are those of layer_report.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import to_builtins

from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import ANONYMOUS, DEFAULT, ClientKey, Identity, QuotaEntity, precedence
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import DEFAULT_RESOURCE, ConfigResource
from proxy.quota.networks import networks_around, one_spelling
from proxy.quota.quota import QuotaKey
from proxy.relay.budgets.list_turns import LIST_BYTES, ListTurns
from proxy.store.layer_report import layer_values
from proxy.store.quota_store import QuotaStore

Explained = dict[str, Any]
_LENGTHS: Final = list(range(128, -1, -1))
"""The prefix lengths of all networks around an address."""


def explain_client(
    store: QuotaStore, keys: Iterable[QuotaKey], client: ClientKey, client_id: str
) -> Iterator[Explained]:
    """Explain the quotas of a user and a client id, either of which may be empty. `client` has the user and
    an address.
    """
    limits, user = store.limits, client[0]
    if limits.settings.exemptions.exempt(Identity(user, client_id, client[1])):
        yield {"exempt": True}
        return
    for key in keys:
        if key.for_ip:
            continue
        bucket = limits.bucket(key.name, user, client_id)
        limit = UNLIMITED if bucket is None else limits.limit(key.name, *bucket)
        entities = [QuotaEntity(*names) for names in precedence(user, client_id)]
        if not client_id:
            # As in Kafka, quotas of client ids do not limit a client without one.
            entities = [entity for entity in entities if entity.client_id is None]
        yield _explained(store, key.name, limit, entities)


def explain_ip(store: QuotaStore, keys: Iterable[QuotaKey], address: str) -> Iterator[Explained]:
    """Explain the quotas of an address, in its canonical spelling."""
    limits = store.limits
    if limits.settings.exemptions.exempt_address(address):
        yield {"exempt": True}
        return
    names = [address, *networks_around(address, _LENGTHS), DEFAULT]
    entities = [QuotaEntity(None, None, name) for name in names]
    for key in keys:
        if key.for_ip:
            yield _explained(store, key.name, limits.ip_limit(key.name, address), entities)


def explain_resource(store: QuotaStore, rules: ConfigRules, resource: ConfigResource) -> Iterator[Explained]:
    """Explain the configs of a topic or a broker."""
    resources = store.limits.resources
    candidates = dict.fromkeys([resource, ConfigResource(resource.type, DEFAULT_RESOURCE)])
    for name, key in rules.keys(resource.type).items():
        values = resources.configured(resource.type, name)
        found = next((each for each in candidates if each.name in values), None)
        limit = values[found.name] if found is not None else key.default
        said = [
            {"entity": {each.type: each.name}, "values": to_builtins(layers[name])}
            for each in candidates
            if name in (layers := layer_values(store.config_layers, each, store.now_ms()))
        ]
        yield {
            "quota": name,
            "limit": limit,
            "mode": store.limits.mode(name),
            "entity": None if found is None else {found.type: found.name},
            "candidates": said,
        }


def explain_lists(turns: ListTurns, query: Mapping[str, str]) -> Explained | None:
    """Return how many bytes of lists a client may have in flight at a broker, and how many of its lists this
    process has in flight and waiting. None if the query is not about a client.

    {"from_bytes": 4096, "max_bytes": 65536, "in_flight": 1, "waiting": 3}

    The counts are missing if the query has no user and no address: all client ids of a user count together.
    """
    if not query.keys() & {"user", "client-id", "ip"}:
        return None
    lists: Explained = {"from_bytes": LIST_BYTES, "max_bytes": turns.most_bytes}
    address = query.get("ip", query.get("address", ""))
    user = query.get("user", "") or (ANONYMOUS if address else "")
    if user:
        where = one_spelling(address) if address and user == ANONYMOUS else ""
        lists["in_flight"], lists["waiting"] = turns.counts(user, where)
    return lists


def _explained(store: QuotaStore, name: str, limit: float, entities: list[QuotaEntity]) -> Explained:
    limits = store.limits
    configured = limits.configured(name)
    found = next((entity for entity in entities if entity in configured), None)
    applies = found is not None and limit != UNLIMITED
    return {
        "quota": name,
        "limit": limit if applies else None,
        "mode": limits.mode(name),
        "scope": _scope(limits, found) if found is not None else None,
        "entity": found.parts() if found is not None and applies else None,
        "callback": limits.source is not None,
        "candidates": list(_candidates(store, name, entities, configured)),
    }


def _candidates(
    store: QuotaStore, name: str, entities: Iterable[QuotaEntity], configured: Mapping[QuotaEntity, float]
) -> Iterator[Explained]:
    for entity in entities:
        values = layer_values(store.client_layers, entity, store.now_ms()).get(name, [])
        if values or entity in configured:
            yield {"entity": entity.parts(), "values": to_builtins(values)}


def _scope(limits: Limits, entity: QuotaEntity) -> str:
    return limits.settings.scopes.of(entity)
