from typing import Unpack

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds.client_bytes import KIND as CLIENT_BYTES
from proxy.quota.kinds.request_percentage import KIND, RequestPercentage
from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import END
from proxy.wire.views import RequestView, ResponseView
from tests.support.quotas.buckets import bucket_states
from tests.support.quotas.enforcement import EnforcementOptions, enforcement

PRODUCE, FETCH, METADATA, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, SHARE_FETCH = 0, 1, 3, 11, 12, 14, 78
WHO = Identity("u", "c", "127.0.0.1")
EVERYONE = QuotaEntity(DEFAULT, None)


def limits(percent: float = 10.0, algorithm: str = PACE, **settings: Unpack[EnforcementOptions]) -> Limits:
    return Limits(
        {EVERYONE: {"request_percentage": percent}}, settings=enforcement(algorithm=algorithm, **settings)
    )


def quota_of(configured: Limits) -> RequestPercentage:
    quota = KIND.build()
    assert isinstance(quota, RequestPercentage)
    quota.configure(configured, 0.0)
    return quota


def charge(
    quota: RequestPercentage,
    seconds: float,
    now: float = 0.0,
    api_key: int = METADATA,
    max_wait_ms: int = 0,
    replica_id: int = -1,
    size: int = 0,
    response_size: int = 0,
    partitions: int = 0,
) -> Verdict:
    request = RequestView(api_key, 9, 1, "c", size)
    request.partitions = partitions
    request.max_wait_ms = max_wait_ms
    request.min_bytes = 1
    request.replica_id = replica_id
    response = ResponseView(9, True, response_size)
    response.service_seconds = seconds
    return quota.charge(request, response, WHO, now)


def used(quota: RequestPercentage, now: float = 0.0) -> float:
    """Percent-seconds that have been counted lately."""
    return sum(bucket.state(now).rate for bucket in quota.live()) * 10


# algorithm, seconds of one response, seconds to wait at 10 %
WAITS = [
    (PACE, 0.1, 0.0),
    (PACE, 0.15, 0.5),
    (PACE, 0.2, 1.0),
    (PACE, 60.0, 1.0),
    (WINDOW, 1.0, 0.0),
    (WINDOW, 1.05, 0.5),
    (WINDOW, 60.0, 1.0),
]


@pytest.mark.parametrize(("algorithm", "seconds", "wait"), WAITS)
def test_a_response_is_charged_its_time_in_percent_with_a_wait_of_one_window_at_most(
    algorithm: str, seconds: float, wait: float
) -> None:
    quota = quota_of(limits(algorithm=algorithm))
    verdict = charge(quota, seconds)
    assert verdict.throttle_seconds == pytest.approx(wait)
    assert (verdict is ALLOW) == (wait == 0.0)
    assert used(quota) == pytest.approx(seconds * 100)


def test_requests_are_charged_when_their_response_arrives() -> None:
    quota = quota_of(limits(0.001))
    request = RequestView(METADATA, 9, 1, "c", 100)
    charge(quota, 100.0)
    assert quota.admit(request, WHO, 0.0) is ALLOW


@pytest.mark.parametrize(
    ("settings", "wait"),
    [({"max_throttle_seconds": 0.25}, 0.25), ({"window_seconds": 3.0}, 3.0), ({"samples": 3}, 1.0)],
)
def test_the_longest_wait_is_one_window_or_the_longest_of_all(
    settings: EnforcementOptions, wait: float
) -> None:
    assert charge(quota_of(limits(**settings)), 60.0).throttle_seconds == pytest.approx(wait)


# API, max_wait_ms, seconds until the response, seconds that count
COUNTED = [
    (METADATA, 0, 0.3, 0.3),
    (METADATA, 500, 0.3, 0.3),
    (PRODUCE, 0, 3.0, 3.0),
    (FETCH, 500, 0.503, 0.001),
    (FETCH, 500, 0.8, 0.001),
    (FETCH, 500, 0.5, 0.001),
    (FETCH, 500, 0.497, 0.01),
    (FETCH, 500, 0.3, 0.01),
    (FETCH, 500, 0.004, 0.004),
    (FETCH, 0, 0.3, 0.3),
    (FETCH, -1, 0.3, 0.3),
    (SHARE_FETCH, 500, 0.8, 0.3),
    (SHARE_FETCH, 500, 0.3, 0.01),
    (JOIN_GROUP, 0, 45.0, 0.01),
    (SYNC_GROUP, 0, 45.0, 0.01),
    (JOIN_GROUP, 0, 0.002, 0.002),
    (HEARTBEAT, 0, 0.3, 0.3),
]


@pytest.mark.parametrize(("api_key", "max_wait_ms", "seconds", "counted"), COUNTED)
def test_a_wait_that_the_client_requested_is_not_charged(
    api_key: int, max_wait_ms: int, seconds: float, counted: float
) -> None:
    quota = quota_of(limits(algorithm=WINDOW))
    charge(quota, seconds, 0.0, api_key, max_wait_ms, response_size=1)
    assert used(quota) == pytest.approx(counted * 100)


def test_a_fetch_whose_response_has_an_unknown_size_costs_the_time_by_which_it_is_late() -> None:
    """The client has closed the connection: otherwise this would be how to be charged less."""
    quota = quota_of(limits(algorithm=WINDOW))
    charge(quota, 0.8, 0.0, FETCH, 500, response_size=0)
    assert used(quota) == pytest.approx(30.1)


@pytest.mark.parametrize(
    ("api_key", "size", "response_size", "counted"),
    [
        (FETCH, 8 << 20, 0, 0.010 + 0.2e-6 * (8 << 20)),
        (FETCH, 100, 50 << 20, 0.010 + 20e-6 + 1e-9 * (50 << 20)),
        (SHARE_FETCH, 1 << 20, 0, 0.010 + 0.2e-6 * (1 << 20)),
        (SYNC_GROUP, 1 << 20, 0, 0.010 + 0.2e-6 * (1 << 20)),
        (FETCH, 64 << 20, 0, 5.0),
    ],
)
def test_a_long_max_wait_does_not_hide_the_work_of_a_large_request(
    api_key: int, size: int, response_size: int, counted: float
) -> None:
    """A fetch of 300,000 partitions with a max_wait_ms of a minute keeps the broker busy for seconds."""
    quota = quota_of(limits(algorithm=WINDOW))
    charge(quota, 5.0, 0.0, api_key, 60_000, size=size, response_size=response_size)
    assert used(quota) == pytest.approx(counted * 100)


@pytest.mark.parametrize(
    ("api_key", "partitions", "counted"), [(FETCH, 1, 0.00111), (FETCH, 300, 0.034), (SHARE_FETCH, 300, 0.3)]
)
def test_the_number_of_partitions_limits_what_a_late_fetch_costs(
    api_key: int, partitions: int, counted: float
) -> None:
    """The rest is in test_fetch_time.py."""
    quota = quota_of(limits(algorithm=WINDOW))
    charge(quota, 0.8, 0.0, api_key, 500, response_size=100, partitions=partitions)
    assert used(quota) == pytest.approx(counted * 100)


def test_a_fetch_that_asks_for_no_wait_costs_its_time() -> None:
    quota = quota_of(limits(algorithm=WINDOW))
    charge(quota, 0.3, 0.0, FETCH, 0, size=100, response_size=100, partitions=1)
    assert used(quota) == pytest.approx(30)


def test_an_idle_consumer_is_not_throttled() -> None:
    """It asks again and again; a response comes with new records, or when max_wait_ms is over."""
    quota = quota_of(limits(5.0))
    for step in range(200):
        waited = 0.5015 if step % 2 else 0.27
        assert charge(quota, waited, step * 0.6, FETCH, 500) is ALLOW


@pytest.mark.parametrize("replica_id", [0, 2])
def test_fetches_of_followers_are_not_planned(replica_id: int) -> None:
    quota = quota_of(limits())
    assert charge(quota, 100.0, api_key=FETCH, replica_id=replica_id) is ALLOW
    assert quota.live() == []


def test_every_api_is_charged() -> None:
    """Also those that only brokers send: Kafka charges a client for one that it rejects."""
    assert KIND.build().api_keys == tuple(range(END))
    engine = QuotaEngine([KIND.build()])
    assert not engine.covers(METADATA)
    engine.configure(limits(), 0.0)
    assert all(engine.covers(api_key) for api_key in range(END))


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
def test_one_slow_request_is_forgotten_when_kafkas_rate_forgets_it(algorithm: str) -> None:
    quota = quota_of(limits(algorithm=algorithm))
    assert charge(quota, 600.0).throttle_seconds == 1.0
    assert charge(quota, 0.0, 5.0).throttle_seconds == 1.0
    assert charge(quota, 0.001, 23.0) is ALLOW


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("percent", [10.0, 50.0, 150.0])
def test_a_client_that_obeys_throttling_stays_at_its_percentage(algorithm: str, percent: float) -> None:
    """Requests of 20 ms, on so many connections that they could take twice the share."""
    engine = QuotaEngine([KIND.build()])
    engine.configure(limits(percent, algorithm), 0.0)
    request = RequestView(METADATA, 9, 1, "c", 100)
    response = ResponseView(9, True, 100)
    response.service_seconds = 0.02
    free_at = [index * 0.0001 for index in range(3)]
    busy = [0.0] * 60
    while min(free_at) < 60:
        now = min(free_at)
        connection = free_at.index(now)
        busy[int(now)] += 0.02
        response_at = now + 0.02
        wait = engine.charge(request, response, WHO, response_at).throttle_seconds
        free_at[connection] = response_at + wait
    assert sum(busy[12:]) / 48 == pytest.approx(percent / 100, rel=0.15)


# bytes over the quota, seconds over the quota, which quota counts the wait, and how long it is
BINDING = [
    (500, 0.08, "request_percentage", 0.8),
    (900, 0.08, "consumer_byte_rate", 0.9),
    (500, 0.05, "request_percentage", 0.5),
]


@pytest.mark.parametrize(("size", "seconds", "binds", "wait"), BINDING)
def test_the_longer_wait_counts_and_on_a_tie_that_of_the_requests(
    size: int, seconds: float, binds: str, wait: float
) -> None:
    engine = QuotaEngine([CLIENT_BYTES.build(), KIND.build()])
    quotas = {"consumer_byte_rate": 1000.0, "request_percentage": 10.0}
    engine.configure(Limits({EVERYONE: quotas}, settings=enforcement(algorithm=WINDOW, samples=2)), 0.0)
    request = RequestView(FETCH, 12, 1, "c", 100)
    response = ResponseView(12, True, 1000 + size - 4)
    response.service_seconds = 0.1 + seconds
    verdict = engine.charge(request, response, WHO, 0.0)
    assert verdict.throttle_seconds == pytest.approx(wait)
    counted = {state.quota: state.throttled_requests for state in bucket_states(engine, 0.0)}
    assert counted == {name: int(name == binds) for name in quotas}


def flood(threads: int, at_once: int = 100, api_key: int = METADATA) -> float:
    """What is charged for requests that begin at the same moment and end one after the other in 10 s."""
    quota = quota_of(limits())
    quota.threads = threads
    for number in range(at_once):
        now = 100.0 + 10.0 * (number + 1) / at_once
        request = RequestView(api_key, 9, 1, "c", 0)
        response = ResponseView(9, True, 0)
        response.began, response.service_seconds = 100.0, now - 100.0
        quota.charge(request, response, WHO, now)
    (bucket,) = quota.live()
    return bucket.used / 100.0


def test_requests_at_the_same_time_cost_no_more_than_all_threads_of_the_broker() -> None:
    """Most of them wait in the broker's queue, which costs nothing in Kafka."""
    assert flood(threads=11) == pytest.approx(110.0)


def test_no_more_requests_than_threads_cost_their_time() -> None:
    assert flood(threads=11, at_once=10) == pytest.approx(55.0)


def test_if_the_threads_are_not_known_each_request_costs_its_time() -> None:
    assert flood(threads=0) == pytest.approx(505.0)


@pytest.mark.parametrize("api_key", [FETCH, JOIN_GROUP, SHARE_FETCH, SYNC_GROUP])
def test_requests_with_other_bounds_do_not_count_towards_the_threads(api_key: int) -> None:
    """They may wait without a thread."""
    assert flood(threads=1, api_key=api_key) == flood(threads=0, api_key=api_key)


REFILLS = [(10.0, 0.15, 1.5), (100.0, 1.5, 1.5), (10.0, 60.0, 11.0), (0.0, 0.15, 11.0)]


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize(("percent", "seconds", "refill"), REFILLS)
def test_a_verdict_tells_when_the_request_itself_is_paid(
    algorithm: str, percent: float, seconds: float, refill: float
) -> None:
    quota = quota_of(limits(percent, algorithm))
    charge(quota, 60.0)
    assert charge(quota, seconds).refill_seconds == pytest.approx(refill)
