import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds.connection_creation import KIND, MAX_WAIT_SECONDS
from proxy.quota.limits.enforcement import OBSERVE, PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.verdict import ALLOW
from tests.support.stories.enforcement import enforcement

ADDRESS = "10.0.0.1"


def limits(quotas, algorithm=PACE, **settings):
    """Limits of these addresses, networks or the default ip."""
    entities = {
        QuotaEntity(None, None, ip): {"connection_creation_rate": rate} for ip, rate in quotas.items()
    }
    return Limits(entities, settings=enforcement(algorithm=algorithm, **settings))


def engine_of(configured):
    engine = QuotaEngine([KIND.build()])
    engine.configure(configured, 0.0)
    return engine


# algorithm, limit, how many come at once before the first that has to wait
BURSTS = [(PACE, 5.0, 5), (PACE, 1.0, 1), (WINDOW, 5.0, 50), (WINDOW, 1.0, 10)]


@pytest.mark.parametrize(("algorithm", "limit", "burst"), BURSTS)
def test_beyond_the_burst_each_waits_for_its_turn(algorithm, limit, burst):
    engine = engine_of(limits({DEFAULT: limit}, algorithm))
    waits = [engine.connect(ADDRESS, 100.0) for _ in range(burst + 20)]
    assert waits[:burst] == [0.0] * burst
    assert waits[burst:] == pytest.approx([min(turn / limit, 30.0) for turn in range(1, 21)])


@pytest.mark.parametrize(
    "settings", [{"burst_seconds": 0.1}, {"algorithm": WINDOW, "samples": 1}, {"burst_seconds": 0.5}]
)
def test_one_may_always_come_at_once(settings):
    engine = engine_of(limits({DEFAULT: 1.0}, **settings))
    assert engine.connect(ADDRESS, 0.0) == 0.0
    assert engine.connect(ADDRESS, 0.0) == pytest.approx(1.0)


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
def test_in_a_storm_connections_are_served_at_the_quota(algorithm):
    """250 at once, then 100 a second, at 10 a second: until the queue is 30 s long none is served early."""
    engine = engine_of(limits({DEFAULT: 10.0}, algorithm))
    arrivals = [0.0] * 150 + [1.0 + index / 100 for index in range(100)]
    served = sorted(now + engine.connect(ADDRESS, now) for now in arrivals)
    burst = 10 if algorithm == PACE else 100
    for index, at in enumerate(served):
        assert index + 1 <= burst + 10 * at + 1e-6
    assert served[-1] == pytest.approx((250 - burst) / 10)


def test_the_debt_is_bounded_to_the_longest_wait():
    engine = engine_of(limits({DEFAULT: 10.0}))
    waits = [engine.connect(ADDRESS, 0.0) for _ in range(5000)]
    assert max(waits) == MAX_WAIT_SECONDS
    assert waits[400:] == [MAX_WAIT_SECONDS] * 4600
    assert engine.connect(ADDRESS, 20.0) == pytest.approx(10.1)
    assert engine.connect(ADDRESS, 31.0) == 0.0


def test_each_address_waits_for_itself():
    engine = engine_of(limits({DEFAULT: 1.0}))
    assert [engine.connect(ADDRESS, 0.0) for _ in range(2)] == [0.0, 1.0]
    assert engine.connect("10.0.0.2", 0.0) == 0.0


def test_addresses_of_a_network_have_its_limit_each():
    engine = engine_of(limits({"10.0.0.0/8": 2.0, "10.0.1.0/24": 3.0, ADDRESS: 4.0, DEFAULT: 1.0}))
    for address in (ADDRESS, "10.0.0.2", "10.0.0.3", "10.0.1.1", "192.168.0.1", "::1"):
        engine.connect(address, 0.0)
    shown = {state.ip: state.limit for state in engine.buckets(0.0)}
    assert shown == {
        ADDRESS: 4.0,
        "10.0.0.2": 2.0,
        "10.0.0.3": 2.0,
        "10.0.1.1": 3.0,
        "192.168.0.1": 1.0,
        "::1": 1.0,
    }


def test_an_address_without_a_quota_passes():
    engine = engine_of(limits({"10.0.0.0/8": 1.0}))
    assert [engine.connect("192.168.0.1", 0.0) for _ in range(100)] == [0.0] * 100
    assert engine.live() == []


def test_a_change_applies_to_those_that_come_after_it():
    engine = engine_of(limits({DEFAULT: 1.0}))
    assert [engine.connect(ADDRESS, 0.0) for _ in range(11)][-1] == pytest.approx(10.0)
    engine.configure(limits({DEFAULT: 1.0, ADDRESS: 100.0}), 0.0)
    assert engine.connect(ADDRESS, 0.0) == pytest.approx(0.11)
    engine.configure(limits({DEFAULT: 1.0}), 1.0)
    assert engine.connect(ADDRESS, 1.0) == 0.0


def test_waits_are_counted_by_address():
    engine = engine_of(limits({DEFAULT: 1.0}))
    for _ in range(4):
        engine.connect(ADDRESS, 100.0)
    (state,) = engine.buckets(100.0)
    assert (state.quota, state.user, state.client_id, state.ip) == (
        "connection_creation_rate",
        "",
        "",
        ADDRESS,
    )
    assert (state.throttled_requests, state.throttle_seconds, state.throttled_until) == (3, 6.0, 103.0)


def test_observed_connections_are_served_at_once():
    engine = engine_of(limits({DEFAULT: 1.0}, mode=OBSERVE))
    assert [engine.connect(ADDRESS, 0.0) for _ in range(4)] == [0.0] * 4
    (state,) = engine.buckets(0.0)
    assert (state.throttled_requests, state.throttle_seconds) == (3, pytest.approx(1.0))


def test_exempt_addresses_are_not_measured():
    engine = engine_of(limits({DEFAULT: 1.0}, exempt_cidrs=["10.0.0.0/24"]))
    assert [engine.connect(ADDRESS, 0.0) for _ in range(4)] == [0.0] * 4
    assert engine.live() == []


def test_the_quota_of_a_user_limits_no_connection():
    quotas = {QuotaEntity(DEFAULT, None): {"connection_creation_rate": 1.0}}
    quota = KIND.build()
    quota.configure(Limits(quotas), 0.0)
    assert all(quota.connect(ADDRESS, 0.0) is ALLOW for _ in range(10))
