"""Limits: what is configured, as one immutable snapshot; a change replaces it whole."""

from typing import Final, final

from proxy.quota.identity import QuotaEntity, limit_precedence, precedence

PACE: Final = "pace"
"""A token bucket with `burst_seconds` of burst: every second is near the quota."""
WINDOW: Final = "window"
"""Kafka's own sampled rate: a burst of up to `samples` windows, then a long wait."""
UNLIMITED: Final = float("inf")


@final
class Limits:
    """Every configured quota, and the settings of the rules.

    quotas: entity -> {quota key: value}, values as Kafka's AlterClientQuotas has them.
    algorithm, burst_seconds: PACE or WINDOW for bandwidth, and PACE's burst in seconds of the quota.
    samples, window_seconds: Kafka's quota.window.num and quota.window.size.seconds.
    exempt_users, exempt_client_ids: no quota of any entity holds for these.

    The look-ups never walk the configured entities: they cost the same with one as with 100,000.
    """

    def __init__(
        self,
        quotas: dict[QuotaEntity, dict[str, float]],
        algorithm: str = PACE,
        burst_seconds: float = 1.0,
        samples: int = 11,
        window_seconds: float = 1.0,
        exempt_users: list[str] | None = None,
        exempt_client_ids: list[str] | None = None,
    ) -> None:
        if algorithm != PACE and algorithm != WINDOW:
            raise ValueError(f"algorithm is {algorithm!r}; it is {PACE} or {WINDOW}")
        self.algorithm: Final = algorithm
        self.burst_seconds: Final = burst_seconds
        self.samples: Final = samples
        self.window_seconds: Final = window_seconds
        self._exempt_users: Final = set(exempt_users or [])
        self._exempt_client_ids: Final = set(exempt_client_ids or [])
        self._by_key: Final[dict[str, dict[QuotaEntity, float]]] = {}
        for entity, values in quotas.items():
            for key, value in values.items():
                self._by_key.setdefault(key, {})[entity] = value

    def configured(self, key: str) -> dict[QuotaEntity, float]:
        """Every entity that has this quota, with its value; not to be changed."""
        return self._by_key.get(key, {})

    def bucket(self, key: str, user: str, client_id: str) -> tuple[str, str] | None:
        """The user and client id (empty: not part of it) of the bucket that holds for a request; None: no
        limit.

        Kafka up to 4.0 remembers that a kind of entity once had a quota, and from 4.1 on (KAFKA-19282)
        forgets it with the last one. Looking afresh each time does what 4.1 does: after a delete nothing is
        left behind.
        """
        values = self._by_key.get(key)
        if values is None or user in self._exempt_users or client_id in self._exempt_client_ids:
            return None
        for entity in precedence(user, client_id):
            if entity in values:
                user_name = "" if entity.user is None else user
                client_name = "" if entity.client_id is None else client_id
                if self.limit(key, user_name, client_name) == UNLIMITED:
                    return None
                return user_name, client_name
        return None

    def limit(self, key: str, user: str, client_id: str) -> float:
        """The limit of the bucket with these names; UNLIMITED where no quota gives it one."""
        values = self._by_key.get(key)
        if values is None:
            return UNLIMITED
        for entity in limit_precedence(user, client_id):
            value = values.get(entity)
            if value is not None:
                return value
        return UNLIMITED
