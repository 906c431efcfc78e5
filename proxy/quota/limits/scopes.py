"""Scopes: whether a client quota is a limit on each broker, or one limit over all brokers."""

from collections.abc import Iterable, Mapping
from typing import Final, final

from proxy.quota.client_ids import configured
from proxy.quota.identity import Names, QuotaEntity

BROKER_SCOPE: Final = "broker"
"""Each broker has a bucket of an entity, as in Kafka."""
CLUSTER_SCOPE: Final = "cluster"
"""An entity has one bucket for all brokers."""


@final
class Scopes:
    """The scope of each entity's quotas: `default`, or the other one for the entities of `others`."""

    __slots__ = ("_default", "_others")

    def __init__(self, default: str = BROKER_SCOPE, others: Iterable[QuotaEntity] = ()) -> None:
        self._default: Final = default
        self._others: Final[set[Names]] = set()
        for entity in others:
            client_id = entity.client_id
            # In the form that Limits has.
            name = None if client_id is None else configured(client_id)
            self._others.add((entity.user, name, entity.ip))

    def of(self, entity: Names) -> str:
        """The scope of an entity's quotas, if it gives a bucket its limit."""
        if entity in self._others:
            return BROKER_SCOPE if self._default == CLUSTER_SCOPE else CLUSTER_SCOPE
        return self._default

    @property
    def default(self) -> str:
        """The scope of entities without their own."""
        return self._default

    @property
    def mixed(self) -> bool:
        """Whether an entity may have another scope than the default."""
        return len(self._others) > 0

    def any(self, scope: str, values: Mapping[Names, float]) -> bool:
        """Whether any entity of `values` has this scope."""
        others = sum([entity in values for entity in self._others])
        return len(values) > others if scope == self._default else others > 0

    def same(self, other: "Scopes") -> bool:
        """Whether both give every entity the same scope."""
        return self._default == other._default and self._others == other._others


PER_BROKER_ONLY: Final = Scopes()
