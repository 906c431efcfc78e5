from collections.abc import Callable

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds.client_bytes import KIND, ClientBytes
from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket_state import BucketState
from proxy.quota.verdict import ALLOW
from proxy.wire.fetch.request import NO_BOUND
from proxy.wire.views import RequestView, ResponseView
from tests.support.quotas.enforcement import enforcement

PRODUCE, FETCH, SHARE_FETCH = 0, 1, 78
EACH_CLIENT = QuotaEntity(None, DEFAULT)
WHO = Identity("ANONYMOUS", "c", "127.0.0.1")
MB = 1_000_000


def limits(
    algorithm: str = PACE,
    producer: float = 1000.0,
    consumer: float = 2000.0,
    burst_seconds: float = 1.0,
    samples: int = 11,
    window_seconds: float = 1.0,
) -> Limits:
    quotas = {EACH_CLIENT: {"producer_byte_rate": producer, "consumer_byte_rate": consumer}}
    return Limits(
        quotas,
        settings=enforcement(
            algorithm=algorithm, burst_seconds=burst_seconds, samples=samples, window_seconds=window_seconds
        ),
    )


def quota_of(configured: Limits) -> ClientBytes:
    quota = KIND.build()
    assert isinstance(quota, ClientBytes)
    quota.configure(configured, 0.0)
    return quota


def produce(size: int) -> RequestView:
    return RequestView(PRODUCE, 9, 1, "c", size)


def fetch(api_key: int = FETCH, max_bytes: int = 50 << 20, replica_id: int = -1) -> RequestView:
    request = RequestView(api_key, 12, 1, "c", 100)
    request.max_bytes = max_bytes
    request.replica_id = replica_id
    return request


def grant(
    of: ClientBytes,
    now: float = 0.0,
    request: RequestView | None = None,
    who: Identity = WHO,
    last: FetchGrant | None = None,
) -> FetchGrant:
    """What a quota or an engine grants a fetch."""
    made = FetchGrant() if last is None else last
    made.begin(False)
    of.limit_fetch(fetch() if request is None else request, who, made, now)
    made.places.complete()
    made.ask(now)
    return made


def response(body_size: int) -> ResponseView:
    return ResponseView(12, True, body_size)


def shown(quota: ClientBytes, now: float = 0.0) -> dict[str, BucketState]:
    return {bucket.quota: bucket.state(now) for bucket in quota.live()}


# algorithm, size of the request, seconds to wait at 1000 B/s
PRODUCED = [(PACE, 1000, 0.0), (PACE, 1500, 0.5), (WINDOW, 10_000, 0.0), (WINDOW, 15_000, 5.0)]


@pytest.mark.parametrize(("algorithm", "size", "wait"), PRODUCED)
def test_produce_is_charged_its_frame_once_when_it_is_read(algorithm: str, size: int, wait: float) -> None:
    quota = quota_of(limits(algorithm))
    verdict = quota.admit(produce(size), WHO, 5.0)
    assert verdict.throttle_seconds == pytest.approx(wait)
    assert (verdict is ALLOW) == (wait == 0.0)
    assert quota.charge(produce(size), response(10**6), WHO, 5.0) is ALLOW
    assert shown(quota, 5.0)["producer_byte_rate"].rate == pytest.approx(size / 10)


# algorithm, bytes of the response's body, seconds to wait at 2000 B/s
CONSUMED = [(PACE, 1996, 0.0), (PACE, 2996, 0.5), (WINDOW, 19_996, 0.0), (WINDOW, 29_996, 5.0)]


@pytest.mark.parametrize("api_key", [FETCH, SHARE_FETCH])
@pytest.mark.parametrize(("algorithm", "body", "wait"), CONSUMED)
def test_a_consumers_fetch_is_charged_its_response_and_four_bytes(
    api_key: int, algorithm: str, body: int, wait: float
) -> None:
    quota = quota_of(limits(algorithm))
    assert quota.admit(fetch(api_key), WHO, 5.0).throttle_seconds == 0.0
    verdict = quota.charge(fetch(api_key), response(body), WHO, 5.0)
    assert verdict.throttle_seconds == pytest.approx(wait)
    assert (verdict.bucket is None) == (wait == 0.0)
    assert shown(quota, 5.0)["consumer_byte_rate"].rate == pytest.approx((body + 4) / 10)


# limits, bytes fetched before, bytes that the fetch may bring; NO_BOUND: it has to wait
BOUNDS = [
    (limits(), 0, 2000),
    (limits(), 1200, 800),
    (limits(), 1800, 500),
    (limits(), 2000, 500),
    (limits(), 2001, NO_BOUND),
    (limits(), 100_000, NO_BOUND),
    (limits(consumer=1.0), 0, 1),
    (limits(burst_seconds=0.1), 0, 500),
    (limits(WINDOW), 0, 2000),
    (limits(WINDOW), 20_000, 500),
    (limits(WINDOW), 100_000, NO_BOUND),
    (limits(WINDOW, samples=1), 0, 500),
]


@pytest.mark.parametrize("api_key", [FETCH, SHARE_FETCH])
@pytest.mark.parametrize(("configured", "before", "bound"), BOUNDS)
def test_a_fetch_is_bounded_by_the_tokens_and_never_to_nothing(
    api_key: int, configured: Limits, before: int, bound: int
) -> None:
    quota = quota_of(configured)
    quota.charge(fetch(api_key), response(before - 4), WHO, 0.0)
    made = grant(quota, request=fetch(api_key))
    assert made.max_bytes == bound
    assert made.granted == (bound != NO_BOUND)


@pytest.mark.parametrize("replica_id", [0, 2])
def test_fetches_of_followers_are_not_planned(replica_id: int) -> None:
    quota = quota_of(limits())
    engine = QuotaEngine([quota])
    engine.configure(limits(), 0.0)
    assert not engine.limit_fetch(fetch(replica_id=replica_id), WHO, FetchGrant(), 0.0)
    assert quota.charge(fetch(replica_id=replica_id), response(MB), WHO, 0.0) is ALLOW
    assert quota.live() == []


def test_each_direction_has_its_own_bucket() -> None:
    quota = quota_of(limits())
    quota.admit(produce(10_000), WHO, 0.0)
    assert quota.charge(fetch(), response(1000), WHO, 0.0) is ALLOW


@pytest.mark.parametrize("missing", ["producer_byte_rate", "consumer_byte_rate"])
def test_without_a_quota_nothing_is_recorded(missing: str) -> None:
    present = {"producer_byte_rate": 1.0, "consumer_byte_rate": 1.0}
    del present[missing]
    quota = quota_of(Limits({EACH_CLIENT: present}))
    if missing == "producer_byte_rate":
        assert quota.admit(produce(MB), WHO, 0.0) is ALLOW
    else:
        assert quota.admit(fetch(), WHO, 0.0) is ALLOW
        assert quota.charge(fetch(), response(MB), WHO, 0.0) is ALLOW
    assert quota.live() == []


def test_a_changed_algorithm_applies_to_buckets_in_use() -> None:
    quota = quota_of(limits(WINDOW))
    quota.admit(produce(5000), WHO, 0.0)
    quota.configure(limits(PACE), 0.0)
    assert quota.admit(produce(2000), WHO, 0.0).throttle_seconds == pytest.approx(1.0)
    assert grant(quota).max_bytes == 2000


def test_buckets_idle_for_an_hour_are_forgotten() -> None:
    quota = quota_of(limits())
    quota.admit(produce(5000), WHO, 0.0)
    quota.charge(fetch(), response(5000), WHO, 1.0)
    quota.forget_idle(3600.0)
    assert list(shown(quota, 3600.0)) == ["consumer_byte_rate"]
    quota.forget_idle(3601.0)
    assert shown(quota, 3601.0) == {}


def second_by_second(uses: list[tuple[float, int]], seconds: int) -> list[int]:
    """Bytes of each second out of (time, bytes)."""
    rates = [0] * seconds
    for at, size in uses:
        if at < seconds:
            rates[int(at)] += size
    return rates


def drive(send: Callable[[float], float], connections: int, seconds: int) -> list[tuple[float, int]]:
    """(time, connection) of each request of connections that each wait as told; send(now) says how long."""
    sent = []
    free_at = [index * 0.001 for index in range(connections)]
    while min(free_at) < seconds:
        now = min(free_at)
        turn = free_at.index(now)
        sent.append((now, turn))
        free_at[turn] = now + max(send(now), 0.000_2)
    return sent


def producer(quota_bytes: int, size: int) -> Callable[[float], float]:
    engine = QuotaEngine([quota_of(limits(producer=quota_bytes))])
    return lambda now: engine.admit(produce(size), WHO, now).throttle_seconds


def test_a_paced_producer_is_near_its_quota_in_every_second() -> None:
    sent = drive(producer(MB, 16_384), 1, 40)
    rates = second_by_second([(at, 16_384) for at, _ in sent], 40)
    assert all(rate == pytest.approx(MB, rel=0.03) for rate in rates[3:])
    assert max(rates[3:]) < 1.3 * MB


def test_a_producer_is_never_more_than_its_burst_ahead() -> None:
    sent = drive(producer(MB, 16_384), 1, 40)
    for index, (at, _) in enumerate(sent):
        assert (index + 1) * 16_384 <= MB * (at + 1) + 16_384 + 1


@pytest.mark.parametrize("connections", [2, 5])
def test_connections_of_one_bucket_share_it_equally(connections: int) -> None:
    sent = drive(producer(MB, 16_384), connections, 40)
    total = len(sent) * 16_384
    assert total == pytest.approx(MB * 41, rel=0.03)
    for connection in range(connections):
        own = sum(16_384 for _, turn in sent if turn == connection)
        assert own == pytest.approx(total / connections, rel=0.05)
    rates = second_by_second([(at, 16_384) for at, _ in sent], 40)
    assert all(rate == pytest.approx(MB, rel=0.06) for rate in rates[3:])


# of each producer under one user's quota: connections, bytes of a request; and what part of it each gets
PRODUCERS = [
    ([(1, 16_384), (1, 16_384)], [0.5, 0.5]),
    ([(1, 16_384), (1, 1 << 20)], [0.5, 0.5]),
    ([(1, 100_000), (1, 128_000)], [0.5, 0.5]),
    ([(1, 1 << 20), (1, 1 << 20)], [0.5, 0.5]),
    ([(1, 16_384), (5, 16_384)], [1 / 6, 5 / 6]),
    ([(1, 16_384), (5, 1 << 20)], [1 / 6, 5 / 6]),
    ([(3, 16_384), (1, 1_000_000), (1, 3_000)], [3 / 5, 1 / 5, 1 / 5]),
]


@pytest.mark.parametrize(("producers", "parts"), PRODUCERS)
def test_connections_share_a_bucket_equally_whatever_the_size_of_their_requests(
    producers: list[tuple[int, int]], parts: list[float]
) -> None:
    engine = QuotaEngine([quota_of(Limits({QuotaEntity("u", None): {"producer_byte_rate": MB}}))])
    connections = [
        (Identity("u", f"client-{index}", "127.0.0.1"), index, produce(size))
        for index, (count, size) in enumerate(producers)
        for _ in range(count)
    ]
    free_at = [index * 0.001 for index in range(len(connections))]
    got = [0] * len(producers)
    while min(free_at) < 60:
        now = min(free_at)
        turn = free_at.index(now)
        who, producer, request = connections[turn]
        got[producer] += request.size if now > 20 else 0
        free_at[turn] = now + max(engine.admit(request, who, now).throttle_seconds, 0.000_2)
    assert sum(got) == pytest.approx(MB * 40, rel=0.05)
    assert [size / sum(got) for size in got] == pytest.approx(parts, rel=0.1)


def test_only_the_first_small_request_waits_for_a_large_one() -> None:
    engine = QuotaEngine([quota_of(limits(producer=MB))])
    large, small = (Identity("u", "c", "127.0.0.1") for _ in range(2))
    assert engine.admit(produce(11 * MB), large, 0.0).throttle_seconds == pytest.approx(10.0)
    assert engine.admit(produce(10_000), small, 0.0).throttle_seconds == pytest.approx(10.01)
    assert engine.admit(produce(10_000), small, 2.0).throttle_seconds == pytest.approx(0.02)


@pytest.mark.parametrize("api_key", [3, 8, 9, 10, 11, 12, 13, 14, 18, 22, 68, 76, 79])
def test_other_apis_are_not_covered(api_key: int) -> None:
    engine = QuotaEngine([quota_of(limits())])
    engine.configure(limits(), 0.0)
    request = RequestView(api_key, 9, 1, "c", MB)
    for _ in range(3):
        engine.admit(produce(MB), WHO, 0.0)
        engine.charge(fetch(), response(MB), WHO, 0.0)
        assert engine.admit(request, WHO, 0.0) is ALLOW
        assert engine.charge(request, response(MB), WHO, 0.0) is ALLOW
    assert not engine.covers(api_key)


def test_a_paced_consumer_is_near_its_quota_in_every_second() -> None:
    engine = QuotaEngine([quota_of(limits(consumer=MB))])
    engine.configure(limits(consumer=MB), 0.0)
    got = []

    grant = FetchGrant()

    def send(now: float) -> float:
        assert engine.limit_fetch(fetch(), WHO, grant, now)
        again = grant.ask(now)
        if again > 0.0:
            return again
        got.append((now, grant.max_bytes))
        wait = engine.charge(fetch(), response(grant.max_bytes - 4), WHO, now).throttle_seconds
        grant.settle(grant.max_bytes, grant.max_bytes, now + wait, now)
        return wait

    drive(send, 1, 40)
    rates = second_by_second(got, 40)
    assert sum(rates[3:]) / 37 == pytest.approx(MB, rel=0.03)
    assert max(rates[3:]) <= 1.3 * MB


def test_a_batch_larger_than_the_quota_gets_through_and_is_paid_for() -> None:
    quota = quota_of(limits())
    first = grant(quota)
    assert first.max_bytes >= 1
    assert quota.charge(fetch(), response(19_996), WHO, 0.0).throttle_seconds == pytest.approx(9.0)
    first.settle(20_000, 20_000, 9.0, 0.0)
    assert not grant(quota, 8.9, last=first).granted
    assert grant(quota, 9.0, last=first).max_bytes == 500
