from collections.abc import Callable

import pytest

from proxy.quota.client_ids import represented
from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import (
    DEFAULT_SETTINGS,
    ENFORCE,
    NO_EXEMPTIONS,
    OBSERVE,
    PACE,
    UNLIMITED,
    WINDOW,
    EnforcementModes,
    EnforcementSettings,
    Exemptions,
    RateAlgorithm,
    RateWindow,
)

KEY, OTHER = "producer_byte_rate", "consumer_byte_rate"


@pytest.mark.parametrize(
    ("user", "client_id", "address", "exempt"),
    [
        ("u", "c", "10.0.0.1", False),
        ("admin", "c", "10.0.0.1", True),
        ("monitor", "admin", "10.0.0.1", False),
        ("u", "monitor", "10.0.0.1", True),
        ("u", "c", "192.168.7.1", True),
        ("u", "c", "::ffff:192.168.7.1", True),
        ("u", "c", "172.16.0.1", True),
        ("u", "c", "172.16.0.2", False),
    ],
)
def test_clients_are_exempt_by_user_client_id_or_address(
    user: str, client_id: str, address: str, exempt: bool
) -> None:
    exemptions = Exemptions(users=["admin"], client_ids=["monitor"], cidrs=["192.168.0.0/16", "172.16.0.1"])
    who = Identity(user, client_id, address)
    assert exemptions.exempt(who) == exempt
    assert not NO_EXEMPTIONS.exempt(who)


def test_connections_are_exempt_by_address_alone() -> None:
    exemptions = Exemptions(cidrs=["192.168.0.0/16"])
    assert exemptions.exempt_address("192.168.0.1")
    assert not exemptions.exempt_address("10.0.0.1")
    assert not Exemptions(users=["admin"]).exempt_address("192.168.0.1")


def test_an_exemption_must_be_a_network() -> None:
    with pytest.raises(ValueError, match="'localhost'"):
        Exemptions(cidrs=["localhost"])


def test_the_defaults_are_kafkas() -> None:
    algorithm = DEFAULT_SETTINGS.algorithm
    assert (algorithm.name, algorithm.burst_seconds, algorithm.max_throttle_seconds) == (PACE, 1, UNLIMITED)
    for window in (algorithm.window, DEFAULT_SETTINGS.controller_window, DEFAULT_SETTINGS.replication_window):
        assert (window.samples, window.seconds) == (11, 1)
    assert (DEFAULT_SETTINGS.modes.mode(KEY), DEFAULT_SETTINGS.rejection_error) == (ENFORCE, 0)
    assert DEFAULT_SETTINGS.exemptions is NO_EXEMPTIONS


def test_what_a_window_covers() -> None:
    window = RateWindow(3, 2.0)
    assert (window.total_seconds, window.burst_seconds) == (6, 4)
    assert window.same(RateWindow(3, 2.0))
    assert not window.same(RateWindow(3, 1.0))
    assert not window.same(RateWindow(2, 2.0))


def test_without_exemptions_all_other_settings_stay() -> None:
    settings = EnforcementSettings(
        algorithm=RateAlgorithm(name=WINDOW),
        controller_window=RateWindow(2),
        replication_window=RateWindow(3),
        modes=EnforcementModes(OBSERVE),
        exemptions=Exemptions(users=["admin"]),
        rejection_error=19,
    )
    without = settings.without_exemptions()
    for name in ("algorithm", "controller_window", "replication_window", "modes", "rejection_error"):
        assert getattr(without, name) is getattr(settings, name)
    assert without.exemptions is NO_EXEMPTIONS


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (EnforcementModes(), (ENFORCE, ENFORCE)),
        (EnforcementModes(OBSERVE), (OBSERVE, OBSERVE)),
        (EnforcementModes(by_key={KEY: OBSERVE}), (OBSERVE, ENFORCE)),
        (EnforcementModes(OBSERVE, {KEY: ENFORCE}), (ENFORCE, OBSERVE)),
    ],
)
def test_a_keys_own_mode_overrides_the_default(modes: EnforcementModes, expected: tuple[str, str]) -> None:
    assert (modes.mode(KEY), modes.mode(OTHER)) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda: RateAlgorithm(name="wind"),
        lambda: EnforcementModes("wind"),
        lambda: EnforcementModes(by_key={KEY: "wind"}),
    ],
)
def test_unknown_names_are_rejected(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="'wind'"):
        make()


def test_a_long_client_id_may_be_exempt() -> None:
    exemptions = Exemptions(client_ids=["c" * 300])
    assert exemptions.exempt(Identity("u", represented("c" * 300), "10.0.0.1"))
    assert not exemptions.exempt(Identity("u", represented("c" * 301), "10.0.0.1"))
