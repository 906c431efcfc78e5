"""EnforcementSettings: how limits are measured and enforced. The limits themselves are in Limits."""

from typing import Final, final

from proxy.quota.client_ids import configured
from proxy.quota.identity import Identity
from proxy.quota.limits.scopes import PER_BROKER_ONLY, Scopes
from proxy.quota.networks import Networks

PACE: Final = "pace"
"""A token bucket with `burst_seconds` of burst: the rate of every second is near the limit."""
WINDOW: Final = "window"
"""Kafka's sampled rate: a burst of up to `samples` - 1 windows, then one long wait."""
ENFORCE: Final = "enforce"
OBSERVE: Final = "observe"
"""The quota is measured and its throttling is counted, but no client is throttled."""
UNLIMITED: Final = float("inf")


def _check(what: str, value: str, one: str, other: str) -> None:
    if value != one and value != other:
        raise ValueError(f"{what} is {value!r}; expected {one} or {other}")


@final
class RateWindow:
    """The samples of a rate, as in Kafka's MetricConfig: quota.window.num of quota.window.size.seconds."""

    __slots__ = ("samples", "seconds")

    def __init__(self, samples: int = 11, seconds: float = 1.0) -> None:
        self.samples: Final = samples
        self.seconds: Final = seconds
        """The length of a sample."""

    @property
    def total_seconds(self) -> float:
        """The seconds that all samples cover: a use is forgotten after them."""
        return self.samples * self.seconds

    @property
    def burst_seconds(self) -> float:
        """The seconds of its limit that Kafka's Rate allows an idle client at once: all samples but one."""
        return (self.samples - 1) * self.seconds

    def same(self, other: "RateWindow") -> bool:
        return self.samples == other.samples and self.seconds == other.seconds


KAFKA_WINDOW: Final = RateWindow()
"""Kafka's default: 11 samples of one second."""


@final
class RateAlgorithm:
    """How byte rates, request time and connection rates are measured.

    name: PACE or WINDOW; ValueError for anything else.
    burst_seconds: PACE: the seconds of its limit that an idle client may use at once.
    window: WINDOW: Kafka's samples. Metrics show the rate over this window with either algorithm.
    max_throttle_seconds: the longest wait that a client is told of; it stays muted until it owes nothing.
    """

    __slots__ = ("burst_seconds", "max_throttle_seconds", "name", "window")

    def __init__(
        self,
        *,
        name: str = PACE,
        burst_seconds: float = 1.0,
        window: RateWindow = KAFKA_WINDOW,
        max_throttle_seconds: float = UNLIMITED,
    ) -> None:
        _check("algorithm", name, PACE, WINDOW)
        self.name: Final = name
        self.burst_seconds: Final = burst_seconds
        self.window: Final = window
        self.max_throttle_seconds: Final = max_throttle_seconds

    @property
    def paced(self) -> bool:
        return self.name == PACE


@final
class EnforcementModes:
    """ENFORCE or OBSERVE for each quota key: `default`, or else what `by_key` has. Raises ValueError."""

    __slots__ = ("_by_key", "_default")

    def __init__(self, default: str = ENFORCE, by_key: dict[str, str] | None = None) -> None:
        self._default: Final = default
        self._by_key: Final = {} if by_key is None else dict(by_key)
        for mode in [default, *self._by_key.values()]:
            _check("mode", mode, ENFORCE, OBSERVE)

    def mode(self, key: str) -> str:
        return self._by_key.get(key, self._default)


@final
class Exemptions:
    """Clients that are neither measured nor throttled, whatever the quotas say: by user, by client id, or by
    address. `cidrs` are networks or single addresses; ValueError for anything else.
    """

    __slots__ = ("_any", "_client_ids", "_networks", "_users")

    def __init__(
        self,
        *,
        users: list[str] | None = None,
        client_ids: list[str] | None = None,
        cidrs: list[str] | None = None,
    ) -> None:
        self._users: Final = frozenset(users or [])
        self._client_ids: Final = frozenset([configured(client_id) for client_id in client_ids or []])
        self._networks: Final = Networks(cidrs or [])
        self._any: Final = bool(users or client_ids or cidrs)

    def exempt(self, who: Identity) -> bool:
        """Whether a client is exempt."""
        return self._any and (
            who.principal in self._users
            or who.client_id in self._client_ids
            or self._networks.contain(who.address)
        )

    def exempt_address(self, address: str) -> bool:
        """Whether connections from an address are exempt."""
        return self._networks.contain(address)


NO_EXEMPTIONS: Final = Exemptions()
ENFORCE_ALL: Final = EnforcementModes()
DEFAULT_ALGORITHM: Final = RateAlgorithm()


@final
class EnforcementSettings:
    """Everything about quotas in the configuration file that is not a limit.

    controller_window: Kafka's controller.quota.window.num and .window.size.seconds.
    replication_window: Kafka's replication.quota.window.num and .window.size.seconds.
    rejection_error: the error code that producers get for what is rejected; 0: one that the client retries.
    scopes: the scopes of client quotas.
    """

    __slots__ = (
        "algorithm",
        "controller_window",
        "exemptions",
        "modes",
        "rejection_error",
        "replication_window",
        "scopes",
    )

    def __init__(
        self,
        *,
        algorithm: RateAlgorithm = DEFAULT_ALGORITHM,
        controller_window: RateWindow = KAFKA_WINDOW,
        replication_window: RateWindow = KAFKA_WINDOW,
        modes: EnforcementModes = ENFORCE_ALL,
        exemptions: Exemptions = NO_EXEMPTIONS,
        rejection_error: int = 0,
        scopes: Scopes = PER_BROKER_ONLY,
    ) -> None:
        self.algorithm: Final = algorithm
        self.controller_window: Final = controller_window
        self.replication_window: Final = replication_window
        self.modes: Final = modes
        self.exemptions: Final = exemptions
        self.rejection_error: Final = rejection_error
        self.scopes: Final = scopes

    def without_exemptions(self) -> "EnforcementSettings":
        """These settings for the requests of brokers, which the exemptions of clients do not concern."""
        return EnforcementSettings(
            algorithm=self.algorithm,
            controller_window=self.controller_window,
            replication_window=self.replication_window,
            modes=self.modes,
            rejection_error=self.rejection_error,
            scopes=self.scopes,
        )


DEFAULT_SETTINGS: Final = EnforcementSettings()
