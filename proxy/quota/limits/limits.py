"""Limits: what is configured, as one immutable snapshot; a change makes another."""

from collections.abc import Mapping
from typing import Final, cast, final

from proxy.quota.client_ids import configured
from proxy.quota.identity import DEFAULT, Names, QuotaEntity, limit_precedence, precedence
from proxy.quota.limits.enforcement import DEFAULT_SETTINGS, UNLIMITED, EnforcementSettings
from proxy.quota.limits.limit_source import LimitSource
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.quota.limits.table import EMPTY, LimitChange, Table
from proxy.quota.networks import networks_around, prefix_lengths


@final
class Limits:
    """Every configured quota, and how they are enforced.

    quotas: entity -> {quota key: value}, values as in Kafka's AlterClientQuotas.
    resources: the quotas that are configs of topics and brokers.
    settings: how all of them are measured and enforced.
    source: limits that take precedence over `quotas`; None if there are none.

    The look-ups never walk the configured entities: they cost the same with one as with 100,000.
    """

    def __init__(
        self,
        quotas: Mapping[QuotaEntity, Mapping[str, float]],
        *,
        resources: Resources = NO_RESOURCES,
        settings: EnforcementSettings = DEFAULT_SETTINGS,
        source: LimitSource | None = None,
    ) -> None:
        self.resources: Final = resources
        self.settings: Final = settings
        self.source: Final = source
        self._tables: Final[dict[str, Table]] = {}
        self._scope = ""
        """The only scope of these limits; empty for both."""
        self._prefix_lengths: list[int] = []
        """The prefix lengths of the networks with a quota, longest first; some networks may have lost their
        quota since.
        """
        self._apply(quotas)

    def with_changes(self, changes: Mapping[QuotaEntity, Mapping[str, float | None]]) -> "Limits":
        """Copy these limits with some quotas changed: a value sets one, None removes it."""
        changed = self._copy(self.resources, self.settings)
        changed._apply(changes)
        return changed

    def with_resources(self, resources: Resources) -> "Limits":
        """Copy these limits with other configs of topics and brokers."""
        return self._copy(resources, self.settings)

    def without_exemptions(self) -> "Limits":
        """Copy these limits for the requests of brokers, which no exemption concerns."""
        return self._copy(self.resources, self.settings.without_exemptions())

    def within(self, scope: str) -> "Limits":
        """These limits without those of client quotas that have another scope; empty: of both scopes.

        The other quotas keep their precedence: a client whose quota has the other scope has no limit here.
        """
        scopes = self.settings.scopes
        if not scope or (scope == scopes.default and not scopes.mixed):
            return self
        if not scopes.mixed:
            return Limits({}, resources=self.resources, settings=self.settings)
        view = self._copy(self.resources, self.settings)
        view._scope = scope
        return view

    def _copy(self, resources: Resources, settings: EnforcementSettings) -> "Limits":
        changed = Limits({}, resources=resources, settings=settings, source=self.source)
        changed._tables.update(self._tables)
        changed._prefix_lengths = self._prefix_lengths
        return changed

    def _apply(self, changes: Mapping[QuotaEntity, Mapping[str, float | None]]) -> None:
        by_key: dict[str, dict[object, float | None]] = {}
        networks: set[str] = set()
        for entity, values in changes.items():
            if entity.ip is not None and "/" in entity.ip:
                networks.add(entity.ip)
            # As an object: compiled code would make another tuple of it for each key.
            names: object = entity
            if entity.client_id is not None:
                # In the form that requests have. The store and the tools keep the configured one.
                client_id = configured(entity.client_id)
                if client_id is not entity.client_id:
                    names = QuotaEntity(entity.user, client_id, entity.ip)
            for key, value in values.items():
                by_key.setdefault(key, {})[names] = value
        for key, entities in by_key.items():
            changed = cast("dict[Names, float | None]", entities)
            self._tables[key] = self._table(key).with_changes(changed)
        lengths = {*self._prefix_lengths, *prefix_lengths(networks)}
        self._prefix_lengths = sorted(lengths, reverse=True)

    def _table(self, key: str) -> Table:
        return self._tables.get(key, EMPTY)

    def configured(self, key: str) -> dict[QuotaEntity, float]:
        """Every entity that has this quota, with its value; read-only."""
        return cast("dict[QuotaEntity, float]", self._table(key).values)

    def any(self, key: str) -> bool:
        """Whether any entity has this quota."""
        values = self._table(key).values
        if not self._scope:
            return len(values) > 0
        return self.settings.scopes.any(self._scope, values)

    @property
    def takes_sourced(self) -> bool:
        """Whether the limits of the source are among these; if not, they only take precedence."""
        return not self._scope or self._scope == self.settings.scopes.default

    def _value(self, entity: Names, value: float) -> float:
        if self._scope and self.settings.scopes.of(entity) != self._scope:
            return UNLIMITED
        return value

    def change_since(self, other: "Limits", key: str) -> LimitChange | None:
        """Which entities of one quota differ from `other`; None if that is not known.

        It is known if one call of other.with_changes() made these limits, and changed neither default
        entities nor networks: their quotas apply to buckets of many names.
        """
        return self._table(key).change_since(other._table(key))

    def mode(self, key: str) -> str:
        """The mode of a quota or config: ENFORCE or OBSERVE."""
        return self.settings.modes.mode(key)

    def bucket(self, key: str, user: str, client_id: str) -> tuple[str, str] | None:
        """The user and client id (empty: not part of it) of the bucket that applies to a request; None: no
        limit.

        This is what Kafka does from 4.1 on: once the last quota of a level is deleted, the level is skipped
        (KAFKA-19282). Older brokers keep looking at the level until they restart.
        """
        values = self._table(key).values
        for entity in precedence(user, client_id):
            if entity in values:
                user_name = "" if entity[0] is None else user
                client_name = "" if entity[1] is None else client_id
                if self.limit(key, user_name, client_name) == UNLIMITED:
                    return None
                return user_name, client_name
        return None

    def limit(self, key: str, user: str, client_id: str) -> float:
        """The limit of the bucket with these names; UNLIMITED if no quota gives it one."""
        values = self._table(key).values
        for entity in limit_precedence(user, client_id):
            value = values.get(entity)
            if value is not None:
                return self._value(entity, value)
        return UNLIMITED

    def ip_limit(self, key: str, address: str) -> float:
        """The limit of an address's bucket: its own, else the most specific network's around it, else the
        default ip's, else UNLIMITED.
        """
        values = self._table(key).values
        for name in [address, *networks_around(address, self._prefix_lengths), DEFAULT]:
            entity = (None, None, name)
            value = values.get(entity)
            if value is not None:
                return self._value(entity, value)
        return UNLIMITED
