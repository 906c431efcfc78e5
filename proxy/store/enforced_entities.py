"""EnforcedEntities: the entities as Limits has them.

An ip has its canonical spelling there, and a host name is replaced by its address. So several configured
entities may be enforced as one: `::ffff:10.0.0.1`, `10.0.0.1`, and a host at this address. The lowest of
their values applies to it, in whatever order they are set or removed.
"""

from collections.abc import Mapping
from typing import Final

from proxy.quota.identity import QuotaEntity
from proxy.quota.networks import canonical_address, canonical_network

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class EnforcedEntities:
    """Which entity each configured entity is enforced as."""

    def __init__(self) -> None:
        self._addresses: Final[dict[str, str]] = {}
        """The address of each host name."""
        self._others: Final[dict[QuotaEntity, set[QuotaEntity]]] = {}
        """The configured entities that are enforced as another one, by that one."""

    def set_address(self, host: QuotaEntity, address: str) -> QuotaEntity | None:
        """Set the address of an ip entity with a host name. Returns the entity as which it was enforced, if
        that changes.
        """
        assert host.ip is not None
        before = self.of(host)
        self._addresses[host.ip] = address
        if self.of(host) == before:
            return None
        self._others.get(before, set()).discard(host)
        return before

    def of(self, entity: QuotaEntity) -> QuotaEntity:
        """Return the entity of Limits as which a configured entity is enforced, and remember that it is."""
        if not entity.ip:
            return entity
        try:
            ip = canonical_network(entity.ip) if "/" in entity.ip else canonical_address(entity.ip)
        except ValueError:
            ip = self._addresses.get(entity.ip, entity.ip)
        if ip == entity.ip:
            return entity
        enforced = QuotaEntity(None, None, ip)
        self._others.setdefault(enforced, set()).add(entity)
        return enforced

    def value(self, enforced: QuotaEntity, name: str, quotas: Quotas) -> float | None:
        """The value of a quota for an entity of Limits; None if it has none. `quotas` are those of the
        configured entities.
        """
        values = [quotas.get(entity, {}).get(name) for entity in (enforced, *self._others.get(enforced, ()))]
        return min([value for value in values if value is not None], default=None)

    def all(self, quotas: Quotas) -> dict[QuotaEntity, Mapping[str, float]]:
        """The quotas of all entities of Limits, of the same `quotas`."""
        self._others.clear()
        enforced: dict[QuotaEntity, Mapping[str, float]] = {}
        for entity, values in quotas.items():
            known = enforced.setdefault(self.of(entity), values)
            if known is not values:
                names = {**known, **values}
                enforced[self.of(entity)] = {
                    name: min(known.get(name, value), values.get(name, value))
                    for name, value in names.items()
                }
        return enforced
