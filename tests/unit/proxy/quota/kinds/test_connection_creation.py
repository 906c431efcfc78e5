from typing import Unpack

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds.connection_creation import KIND, MAX_WAIT_SECONDS
from proxy.quota.limits.enforcement import OBSERVE, PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.rates import SampledRate
from proxy.quota.verdict import ALLOW
from tests.support.present import present
from tests.support.quotas.buckets import bucket_states, live_buckets
from tests.support.quotas.enforcement import EnforcementOptions, enforcement

ADDRESS = "10.0.0.1"


def limits(quotas: dict[str, float], algorithm: str = PACE, **settings: Unpack[EnforcementOptions]) -> Limits:
    """Limits of these addresses, networks or the default ip."""
    entities = {
        QuotaEntity(None, None, ip): {"connection_creation_rate": rate} for ip, rate in quotas.items()
    }
    return Limits(entities, settings=enforcement(algorithm=algorithm, **settings))


def engine_of(configured: Limits) -> QuotaEngine:
    engine = QuotaEngine([KIND.build()])
    engine.configure(configured, 0.0)
    return engine


def wait(engine: QuotaEngine, now: float, address: str = ADDRESS) -> float | None:
    """How long a new connection waits until it is served; None if it is closed instead."""
    verdict = engine.connect(address, now)
    return None if verdict.closes else verdict.throttle_seconds


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("limit", [5.0, 2.0, 1.0])
def test_beyond_the_burst_each_waits_for_its_turn(algorithm: str, limit: float) -> None:
    engine = engine_of(limits({DEFAULT: limit}, algorithm))
    burst, waiting = int(limit), int(limit * MAX_WAIT_SECONDS)
    waits = [wait(engine, 100.0) for _ in range(burst + waiting + 20)]
    assert waits[:burst] == [0.0] * burst
    assert waits[burst : burst + waiting] == pytest.approx([turn / limit for turn in range(1, waiting + 1)])
    assert waits[burst + waiting :] == [None] * 20


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [(PACE, {"burst_seconds": 0.1}), (WINDOW, {"samples": 1}), (PACE, {"burst_seconds": 0.5})],
)
def test_one_may_always_come_at_once(algorithm: str, settings: EnforcementOptions) -> None:
    engine = engine_of(limits({DEFAULT: 1.0}, algorithm, **settings))
    assert wait(engine, 0.0) == 0.0
    assert wait(engine, 0.0) == pytest.approx(1.0)


def test_a_process_that_is_about_to_get_a_part_closes_no_connection_that_can_be_served() -> None:
    """Other processes use the whole limit: the part is a reserve, until they know of the first wait."""
    engine = engine_of(limits({DEFAULT: 5.0}))
    assert wait(engine, 0.0) == 0.0
    [bucket] = engine.active[0].live()
    bucket.share(0.0025, 0.0)
    waits = [wait(engine, 0.0) for _ in range(7)]
    assert waits[:6] == pytest.approx([0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    assert waits[6] is None


def kafkas_rate(arrivals: list[float], limit: float) -> int:
    """How many connections Kafka's ConnectionQuotas accepts: those over the rate are not recorded."""
    rate, accepted = SampledRate(11, 1.0), 0
    for now in arrivals:
        rate.record(1.0, now)
        if rate.throttle_seconds(limit, now) > 0.0:
            rate.record(-1.0, now)
        else:
            accepted += 1
    return accepted


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize(
    ("rate", "limit", "seconds"),
    [(20.0, 2.0, 45.0), (100.0, 10.0, 45.0), (1000.0, 2.0, 45.0), (20.0, 2.0, 300.0)],
)
def test_a_storm_gets_the_quota_however_long_it_lasts(
    algorithm: str, rate: float, limit: float, seconds: float
) -> None:
    engine = engine_of(limits({DEFAULT: limit}, algorithm))
    arrivals = [100.0 + index / rate for index in range(int(rate * seconds))]
    served = [(now + wait_, now) for now in arrivals if (wait_ := wait(engine, now)) is not None]
    by_the_end = [at for at, _ in served if at < 100.0 + seconds]
    assert len(by_the_end) <= limit * (seconds + 1.0)
    assert len(by_the_end) <= 1.05 * kafkas_rate(arrivals, limit)
    assert len(by_the_end) >= 0.95 * limit * seconds
    assert all(at - now <= MAX_WAIT_SECONDS + 1e-6 for at, now in served)
    assert len(served) - len(by_the_end) <= limit * MAX_WAIT_SECONDS


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
def test_a_storm_leaves_no_debt(algorithm: str) -> None:
    engine = engine_of(limits({DEFAULT: 2.0}, algorithm))
    for index in range(60_000):
        engine.connect(ADDRESS, 100.0 + index / 1000)
    assert present(wait(engine, 160.5)) <= MAX_WAIT_SECONDS
    assert wait(engine, 160.6 + MAX_WAIT_SECONDS) == 0.0


def test_a_connection_that_is_not_served_is_closed_after_a_window() -> None:
    engine = engine_of(limits({DEFAULT: 1.0}, WINDOW, window_seconds=0.5))
    verdicts = [engine.connect(ADDRESS, 0.0) for _ in range(30)]
    assert {verdict.throttle_seconds for verdict in verdicts if verdict.closes} == {0.5}


def test_a_connection_that_ends_before_its_turn_leaves_it_to_others() -> None:
    engine = engine_of(limits({DEFAULT: 1.0}))
    assert [wait(engine, 0.0) for _ in range(4)] == pytest.approx([0.0, 1.0, 2.0, 3.0])
    engine.give_back_connection(ADDRESS, 0.0)
    engine.give_back_connection(ADDRESS, 0.0)
    assert wait(engine, 0.0) == pytest.approx(2.0)


def test_nothing_is_given_back_to_an_address_without_a_quota() -> None:
    engine = engine_of(limits({"10.9.0.0/16": 1.0}, exempt_cidrs=["10.9.1.0/24"]))
    for address in ("10.9.1.1", ADDRESS):
        engine.give_back_connection(address, 0.0)
    assert live_buckets(engine) == []


def test_each_address_waits_for_itself() -> None:
    engine = engine_of(limits({DEFAULT: 1.0}))
    assert [wait(engine, 0.0) for _ in range(2)] == [0.0, 1.0]
    assert wait(engine, 0.0, "10.0.0.2") == 0.0


def test_addresses_of_a_network_have_its_limit_each() -> None:
    engine = engine_of(limits({"10.0.0.0/8": 2.0, "10.0.1.0/24": 3.0, ADDRESS: 4.0, DEFAULT: 1.0}))
    for address in (ADDRESS, "10.0.0.2", "10.0.0.3", "10.0.1.1", "192.168.0.1", "::1"):
        engine.connect(address, 0.0)
    shown = {state.ip: state.limit for state in bucket_states(engine, 0.0)}
    assert shown == {
        ADDRESS: 4.0,
        "10.0.0.2": 2.0,
        "10.0.0.3": 2.0,
        "10.0.1.1": 3.0,
        "192.168.0.1": 1.0,
        "::1": 1.0,
    }


def test_an_address_without_a_quota_passes() -> None:
    engine = engine_of(limits({"10.0.0.0/8": 1.0}))
    assert [wait(engine, 0.0, "192.168.0.1") for _ in range(100)] == [0.0] * 100
    assert live_buckets(engine) == []


def test_a_change_applies_to_those_that_come_after_it() -> None:
    engine = engine_of(limits({DEFAULT: 1.0}))
    assert [wait(engine, 0.0) for _ in range(11)][-1] == pytest.approx(10.0)
    engine.configure(limits({DEFAULT: 1.0, ADDRESS: 100.0}), 0.0)
    assert wait(engine, 0.0) == pytest.approx(0.11)
    engine.configure(limits({DEFAULT: 1.0}), 1.0)
    assert wait(engine, 1.0) == 0.0


def test_a_lower_limit_makes_nobody_wait_for_the_higher_one() -> None:
    engine = engine_of(limits({DEFAULT: 100.0}))
    assert sum(wait(engine, 0.0) is not None for _ in range(2000)) == 1100
    engine.configure(limits({DEFAULT: 1.0}), 0.0)
    assert wait(engine, 0.0) is None
    assert wait(engine, 1.0) == pytest.approx(10.0)


def test_waits_are_counted_by_address() -> None:
    engine = engine_of(limits({DEFAULT: 1.0}))
    for _ in range(4):
        wait(engine, 100.0)
    (state,) = bucket_states(engine, 100.0)
    assert (state.quota, state.user, state.client_id, state.ip) == (
        "connection_creation_rate",
        "",
        "",
        ADDRESS,
    )
    assert (state.throttled_requests, state.throttle_seconds, state.throttled_until) == (3, 6.0, 103.0)


def test_observed_connections_are_served_at_once() -> None:
    engine = engine_of(limits({DEFAULT: 1.0}, mode=OBSERVE))
    assert [wait(engine, 0.0) for _ in range(4)] == [0.0] * 4
    (state,) = bucket_states(engine, 0.0)
    assert state.throttled_requests == 3
    assert state.throttle_seconds == pytest.approx(1.0)


def test_exempt_addresses_are_not_measured() -> None:
    engine = engine_of(limits({DEFAULT: 1.0}, exempt_cidrs=["10.0.0.0/24"]))
    assert [wait(engine, 0.0) for _ in range(4)] == [0.0] * 4
    assert live_buckets(engine) == []


def test_the_quota_of_a_user_limits_no_connection() -> None:
    quotas = {QuotaEntity(DEFAULT, None): {"connection_creation_rate": 1.0}}
    quota = KIND.build()
    quota.configure(Limits(quotas), 0.0)
    assert all(quota.connect(ADDRESS, 0.0) is ALLOW for _ in range(10))
