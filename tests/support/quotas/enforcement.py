"""Enforcement settings by their names alone, for tests that set few of them."""

from typing import TypedDict

from proxy.quota.limits.enforcement import (
    ENFORCE,
    PACE,
    UNLIMITED,
    EnforcementModes,
    EnforcementSettings,
    Exemptions,
    RateAlgorithm,
    RateWindow,
)
from proxy.quota.limits.scopes import PER_BROKER_ONLY, Scopes


class EnforcementOptions(TypedDict, total=False):
    """The arguments of enforcement() but for `algorithm`, for tests that pass them on."""

    burst_seconds: float
    samples: int
    window_seconds: float
    max_throttle_seconds: float
    mutation_samples: int
    mutation_window_seconds: float
    replication_samples: int
    replication_window_seconds: float
    mode: str
    modes: dict[str, str]
    exempt_users: list[str]
    exempt_client_ids: list[str]
    exempt_cidrs: list[str]
    rejection_error: int
    scopes: Scopes


def enforcement(
    *,
    algorithm: str = PACE,
    burst_seconds: float = 1.0,
    samples: int = 11,
    window_seconds: float = 1.0,
    max_throttle_seconds: float = UNLIMITED,
    mutation_samples: int = 11,
    mutation_window_seconds: float = 1.0,
    replication_samples: int = 11,
    replication_window_seconds: float = 1.0,
    mode: str = ENFORCE,
    modes: dict[str, str] | None = None,
    exempt_users: list[str] | None = None,
    exempt_client_ids: list[str] | None = None,
    exempt_cidrs: list[str] | None = None,
    rejection_error: int = 0,
    scopes: Scopes = PER_BROKER_ONLY,
) -> EnforcementSettings:
    """Kafka's defaults, with these values changed."""
    return EnforcementSettings(
        algorithm=RateAlgorithm(
            name=algorithm,
            burst_seconds=burst_seconds,
            window=RateWindow(samples, window_seconds),
            max_throttle_seconds=max_throttle_seconds,
        ),
        controller_window=RateWindow(mutation_samples, mutation_window_seconds),
        replication_window=RateWindow(replication_samples, replication_window_seconds),
        modes=EnforcementModes(mode, modes),
        exemptions=Exemptions(users=exempt_users, client_ids=exempt_client_ids, cidrs=exempt_cidrs),
        rejection_error=rejection_error,
        scopes=scopes,
    )
