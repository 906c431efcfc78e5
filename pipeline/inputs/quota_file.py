"""Reads quota files: the `quotas:` of the proxy's configuration, as far as the pipeline needs it.

quotas: {clients: [{entity: {user: alice, client-id: billing}, producer_byte_rate: 1048576}]}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from msgspec import Meta, Struct

from pipeline.errors import InputError
from pipeline.inputs.documents import convert, read_yaml
from proxy.quota.identity import QuotaEntity, parse_entity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.config_keys import (
    BYTES_IN_THRESHOLD,
    CONSUMER_BYTE_RATE,
    CONSUMER_BYTE_RATE_ACTION,
    PRODUCER_BYTE_RATE,
    PRODUCER_BYTE_RATE_ACTION,
    TOPIC_CONSUMER_BYTE_RATE,
    TOPIC_CONSUMER_BYTE_RATE_ACTION,
    TOPIC_PRODUCER_BYTE_RATE,
    TOPIC_PRODUCER_BYTE_RATE_ACTION,
    TOTAL_BYTES_IN_THRESHOLD,
)
from proxy.quota.limits.enforcement import EnforcementSettings, Exemptions, RateAlgorithm, RateWindow
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.quota.limits.topic_limits import SHARES_TOPIC, STORE_TOPIC, USAGE_TOPIC

BROKER: Final = "broker"
CLUSTER: Final = "cluster"
SCOPES: Final = (BROKER, CLUSTER)
"""Where a byte rate is measured: at each broker of each proxy, or over the whole cluster."""
ENTITY: Final = "entity"
SCOPE: Final = "scope"
EXPIRES: Final = "expires"
_REPLAYED: Final = (
    TOTAL_BYTES_IN_THRESHOLD,
    BYTES_IN_THRESHOLD,
    PRODUCER_BYTE_RATE,
    PRODUCER_BYTE_RATE_ACTION,
    CONSUMER_BYTE_RATE,
    CONSUMER_BYTE_RATE_ACTION,
    TOPIC_PRODUCER_BYTE_RATE,
    TOPIC_PRODUCER_BYTE_RATE_ACTION,
    TOPIC_CONSUMER_BYTE_RATE,
    TOPIC_CONSUMER_BYTE_RATE_ACTION,
)
_PROXY_TOPICS: Final = frozenset([STORE_TOPIC, USAGE_TOPIC, SHARES_TOPIC])
"""By their default names: a quota file does not tell others."""
Above0 = Annotated[float, Meta(gt=0)]


class Exempt(Struct, frozen=True):
    """Clients that no quota applies to."""

    users: list[str] = []
    client_ids: list[str] = []


class Quotas(Struct, frozen=True):
    """How rates are measured, and the limits; other keys of the proxy's configuration are ignored."""

    algorithm: Literal["pace", "window"] = "pace"
    burst_seconds: Above0 = 1.0
    window_num: Annotated[int, Meta(ge=1)] = 11
    window_size_seconds: Above0 = 1.0
    max_throttle_seconds: Above0 = 10.0
    exempt: Exempt = Exempt()
    scope: Literal["broker", "cluster"] = "broker"
    clients: list[dict[str, Any]] = []
    topics: dict[str, dict[str, Any]] = {}
    brokers: dict[int | str, dict[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class QuotaSet:
    """The quotas of a file that do not expire. Plain values: Spark's workers build Limits from them."""

    settings: Quotas
    clients: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    brokers: dict[str, dict[str, str]] = field(default_factory=dict)
    scopes: dict[QuotaEntity, str] = field(default_factory=dict)
    """The scopes of entities that have their own; those of others are `settings.scope`."""

    def scope(self, entity: QuotaEntity) -> str:
        """Return the scope of an entity's quotas."""
        return self.scopes.get(entity, self.settings.scope)

    def has(self, scope: str) -> bool:
        """Whether any client quota has this scope."""
        return any(self.scope(entity) == scope for entity in self.clients)

    def limits_of(self, scope: str) -> Limits:
        """Build limits with the entities and quotas of limits(), each 1 in this scope and 0 in another, to
        look up the scope of a bucket.
        """
        return Limits(
            {
                entity: dict.fromkeys(values, float(self.scope(entity) == scope))
                for entity, values in self.clients.items()
            }
        )

    @property
    def burst_seconds(self) -> float:
        """Seconds' worth of its quota that a client may use at once."""
        settings = self.settings
        if settings.algorithm == "pace":
            return settings.burst_seconds
        return max((settings.window_num - 1) * settings.window_size_seconds, settings.window_size_seconds)

    def limits(self) -> Limits:
        """Build the limits that the proxy's quotas take."""
        settings = self.settings
        return Limits(
            self.clients,
            resources=Resources(self.topics, self.brokers, proxy_topics=_PROXY_TOPICS),
            settings=EnforcementSettings(
                algorithm=RateAlgorithm(
                    name=settings.algorithm,
                    burst_seconds=settings.burst_seconds,
                    window=RateWindow(settings.window_num, settings.window_size_seconds),
                    max_throttle_seconds=settings.max_throttle_seconds,
                ),
                exemptions=Exemptions(users=settings.exempt.users, client_ids=settings.exempt.client_ids),
            ),
        )


def read_quotas(path: Path) -> QuotaSet:
    """Read the quotas, without those that expire. InputError names the invalid key."""
    root = read_yaml(path)
    if not isinstance(root, dict) or not isinstance(root.get("quotas"), dict):
        raise InputError(f"{path}: quotas: expected a mapping, as in the proxy's configuration")
    settings = convert(root["quotas"], Quotas, path, "quotas")
    clients: dict[QuotaEntity, dict[str, float]] = {}
    scopes: dict[QuotaEntity, str] = {}
    for place, entry in enumerate(settings.clients):
        if EXPIRES in entry:
            continue
        try:
            entity = _entity(entry)
            if entity in clients:
                raise ValueError(f"{entity} already has an entry; write all its quotas into one entry")
            clients[entity] = _values(entry)
            if SCOPE in entry:
                scopes[entity] = _scope(entry[SCOPE])
        except ValueError as error:
            raise InputError(f"{path}: quotas.clients[{place}]: {error}") from error
    return QuotaSet(
        settings,
        clients,
        {name: _configs(values, path, f"topics.{name}") for name, values in settings.topics.items()},
        {str(name): _configs(values, path, f"brokers.{name}") for name, values in settings.brokers.items()},
        scopes,
    )


def _configs(values: Mapping[str, Any], path: Path, place: str) -> dict[str, str]:
    """Return the configs of a topic or broker that events can be replayed against."""
    found: dict[str, str] = {}
    for key in _REPLAYED:
        if key.name not in values:
            continue
        text = str(values[key.name])
        problem = key.problem(text)
        if problem:
            raise InputError(f"{path}: quotas.{place}: {problem}")
        found[key.name] = key.canonical(text)
    return found


def _entity(entry: Mapping[str, Any]) -> QuotaEntity:
    parts = entry.get(ENTITY)
    if not isinstance(parts, dict):
        raise ValueError("entity: expected a mapping of user, client-id or both, or of ip")
    return parse_entity(parts)


def _scope(value: object) -> str:
    if value not in SCOPES:
        raise ValueError(f"scope: {value!r}: expected one of {', '.join(SCOPES)}")
    return str(value)


def _values(entry: Mapping[str, Any]) -> dict[str, float]:
    keys = {key.name: key for kind in load_kinds() for key in kind.keys}
    values: dict[str, float] = {}
    for name, value in entry.items():
        if name in (ENTITY, SCOPE):
            continue
        if name not in keys:
            raise ValueError(f"{name} is not a quota; expected one of {', '.join(sorted(keys))}")
        problem = keys[name].problem(value)
        if problem:
            raise ValueError(problem)
        values[name] = float(value)
    return values


def to_yaml(
    quotas: Mapping[QuotaEntity, Mapping[str, int]], scopes: Mapping[QuotaEntity, str] | None = None
) -> str:
    """Write the quotas as YAML for `quota-proxy quotas import` and the proxy's configuration. Entities in
    `scopes` get their own scope.
    """
    own = scopes or {}
    clients = [
        {
            ENTITY: entity.parts(),
            **({SCOPE: own[entity]} if entity in own else {}),
            **dict(sorted(values.items())),
        }
        for entity, values in sorted(quotas.items(), key=lambda item: tuple(name or "" for name in item[0]))
    ]
    shape = {"quotas": {"clients": clients}}
    return str(yaml.safe_dump(shape, sort_keys=False, allow_unicode=True, width=2**30))
