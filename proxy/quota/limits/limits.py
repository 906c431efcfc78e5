"""Limits: what is configured, as one immutable snapshot; a change makes another."""

from collections.abc import Mapping
from typing import Final, cast, final

from proxy.quota.identity import (
    DEFAULT,
    Identity,
    Names,
    QuotaEntity,
    limit_precedence,
    precedence,
)
from proxy.quota.limits.limit_source import LimitSource
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.quota.limits.table import EMPTY, LimitChange, Table
from proxy.quota.networks import Networks, networks_around, prefix_lengths

PACE: Final = "pace"
"""A token bucket with `burst_seconds` of burst: every second is near the quota."""
WINDOW: Final = "window"
"""Kafka's own sampled rate: a burst of up to `samples` windows, then a long wait."""
ENFORCE: Final = "enforce"
OBSERVE: Final = "observe"
"""Measured and counted as if enforced, but nobody waits."""
UNLIMITED: Final = float("inf")


@final
class Limits:
    """Every configured quota, and the settings of the rules.

    quotas: entity -> {quota key: value}, values as Kafka's AlterClientQuotas has them.
    algorithm, burst_seconds: PACE or WINDOW for bandwidth, and PACE's burst in seconds of the quota.
    samples, window_seconds: Kafka's quota.window.num and quota.window.size.seconds.
    exempt_users, exempt_client_ids, exempt_cidrs: whoever is one of these or connects from there is neither
    measured nor made to wait, whatever the quotas say. A CIDR may be a single address.
    mode, modes: ENFORCE or OBSERVE for all quotas, and by quota key for those where it is another.
    max_throttle_seconds: the longest that a byte rate makes a client wait at once; the rest stays as a debt.
    mutation_samples, mutation_window_seconds: Kafka's controller.quota.window.num and .window.size.seconds.
    resources: the quotas that are configs of topics and brokers.
    rejection_error: the error code that producers get for what is rejected; 0 for one that they retry.
    source: rules that are asked before the quotas of users and client ids; None where there are none.
    replication_samples, replication_window_seconds: Kafka's replication.quota.window.num and
    .window.size.seconds.

    The look-ups never walk the configured entities: they cost the same with one as with 100,000. Raises
    ValueError for settings that are none.
    """

    def __init__(
        self,
        quotas: Mapping[QuotaEntity, Mapping[str, float]],
        algorithm: str = PACE,
        burst_seconds: float = 1.0,
        samples: int = 11,
        window_seconds: float = 1.0,
        exempt_users: list[str] | None = None,
        exempt_client_ids: list[str] | None = None,
        exempt_cidrs: list[str] | None = None,
        mode: str = ENFORCE,
        modes: dict[str, str] | None = None,
        max_throttle_seconds: float = UNLIMITED,
        mutation_samples: int = 11,
        mutation_window_seconds: float = 1.0,
        resources: Resources = NO_RESOURCES,
        replication_samples: int = 11,
        replication_window_seconds: float = 1.0,
        rejection_error: int = 0,
        source: LimitSource | None = None,
    ) -> None:
        _check("algorithm", algorithm, PACE, WINDOW)
        for each in [mode, *(modes or {}).values()]:
            _check("mode", each, ENFORCE, OBSERVE)
        self.algorithm: Final = algorithm
        self.burst_seconds: Final = burst_seconds
        self.samples: Final = samples
        self.window_seconds: Final = window_seconds
        self.max_throttle_seconds: Final = max_throttle_seconds
        self.mutation_samples: Final = mutation_samples
        self.mutation_window_seconds: Final = mutation_window_seconds
        self.resources: Final = resources
        self.replication_samples: Final = replication_samples
        self.replication_window_seconds: Final = replication_window_seconds
        self.rejection_error: Final = rejection_error
        self.source: Final = source
        self._mode: Final = mode
        self._modes: Final = dict(modes or {})
        self._exempt_users: Final = frozenset(exempt_users or [])
        self._exempt_client_ids: Final = frozenset(exempt_client_ids or [])
        self._exempt_cidrs: Final = list(exempt_cidrs or [])
        self._exempt_networks: Final = Networks(self._exempt_cidrs)
        self._any_exempt: Final = bool(exempt_users or exempt_client_ids or exempt_cidrs)
        self._tables: Final[dict[str, Table]] = {}
        self._prefix_lengths: list[int] = []
        """Of the networks that have a quota, the longest first; some of them may have lost it."""
        self._apply(quotas)

    def with_changes(self, changes: Mapping[QuotaEntity, Mapping[str, float | None]]) -> "Limits":
        """These limits but for some quotas: a value sets one, None removes it."""
        changed = self._with(self.resources)
        changed._apply(changes)
        return changed

    def with_resources(self, resources: Resources) -> "Limits":
        """These limits but for the configs of topics and brokers."""
        return self._with(resources)

    def without_exemptions(self) -> "Limits":
        """These limits, for whom there are no exemptions: brokers among themselves."""
        return self._with(self.resources, exempt=False)

    def _with(self, resources: Resources, exempt: bool = True) -> "Limits":
        changed = Limits(
            {},
            self.algorithm,
            self.burst_seconds,
            self.samples,
            self.window_seconds,
            list(self._exempt_users) if exempt else None,
            list(self._exempt_client_ids) if exempt else None,
            self._exempt_cidrs if exempt else None,
            self._mode,
            self._modes,
            self.max_throttle_seconds,
            self.mutation_samples,
            self.mutation_window_seconds,
            resources,
            self.replication_samples,
            self.replication_window_seconds,
            self.rejection_error,
            self.source,
        )
        changed._tables.update(self._tables)
        changed._prefix_lengths = self._prefix_lengths
        return changed

    def _apply(self, changes: Mapping[QuotaEntity, Mapping[str, float | None]]) -> None:
        by_key: dict[str, dict[Names, float | None]] = {}
        networks: set[str] = set()
        for entity, values in changes.items():
            if entity.ip is not None and "/" in entity.ip:
                networks.add(entity.ip)
            for key, value in values.items():
                by_key.setdefault(key, {})[entity] = value
        for key, entities in by_key.items():
            self._tables[key] = self._table(key).with_changes(entities)
        lengths = {*self._prefix_lengths, *prefix_lengths(networks)}
        self._prefix_lengths = sorted(lengths, reverse=True)

    def _table(self, key: str) -> Table:
        return self._tables.get(key, EMPTY)

    def configured(self, key: str) -> dict[QuotaEntity, float]:
        """Every entity that has this quota, with its value; not to be changed."""
        return cast("dict[QuotaEntity, float]", self._table(key).values)

    def change_since(self, other: "Limits", key: str) -> LimitChange | None:
        """What is different about one quota; None: it may be anything. Known where these limits were made by
        one with_changes() of the others, that left default entities and networks alone.
        """
        return self._table(key).change_since(other._table(key))

    def mode(self, key: str) -> str:
        """ENFORCE or OBSERVE."""
        return self._modes.get(key, self._mode)

    def exempt(self, who: Identity) -> bool:
        """Whether no quota holds for this client."""
        return self._any_exempt and (
            who.principal in self._exempt_users
            or who.client_id in self._exempt_client_ids
            or self._exempt_networks.contain(who.address)
        )

    def exempt_address(self, address: str) -> bool:
        """Whether no quota holds for connections from here."""
        return self._exempt_networks.contain(address)

    def bucket(self, key: str, user: str, client_id: str) -> tuple[str, str] | None:
        """The user and client id (empty: not part of it) of the bucket that holds for a request; None: no
        limit.

        Kafka up to 4.0 remembers that a kind of entity once had a quota, and from 4.1 on (KAFKA-19282)
        forgets it with the last one. Looking afresh each time does what 4.1 does: after a delete nothing is
        left behind.
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
        """The limit of the bucket with these names; UNLIMITED where no quota gives it one."""
        values = self._table(key).values
        for entity in limit_precedence(user, client_id):
            value = values.get(entity)
            if value is not None:
                return value
        return UNLIMITED

    def ip_limit(self, key: str, address: str) -> float:
        """The limit of an address's bucket; UNLIMITED where neither it, nor a network around it, nor the
        default ip has one.
        """
        values = self._table(key).values
        for name in [address, *networks_around(address, self._prefix_lengths), DEFAULT]:
            value = values.get((None, None, name))
            if value is not None:
                return value
        return UNLIMITED


def _check(what: str, value: str, one: str, other: str) -> None:
    if value != one and value != other:
        raise ValueError(f"{what} is {value!r}; it is {one} or {other}")
