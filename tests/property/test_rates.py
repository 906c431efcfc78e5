"""The rates against naive models of Kafka's rules, with no thought for speed; times in whole milliseconds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.quota.measure.rates import EwmaRate, SampledRate, SimpleRate, TokenBucket

CLOSE = 1e-9


class Samples:
    """Kafka's ring of samples (3.8 and later)."""

    def __init__(self, samples: int, window: int) -> None:
        self.samples = samples
        self.window = window
        self.ring: list[dict[str, float]] = []
        self.current = 0

    def record(self, value: float, now: int) -> None:
        if not self.ring:
            self.ring.append({"start": now, "last": now, "value": 0.0})
        sample = self.ring[self.current]
        if now - sample["start"] >= self.window:
            self.current = (self.current + 1) % (self.samples + 1)
            if self.current == len(self.ring):
                self.ring.append({})
            sample = self.ring[self.current]
            sample.update(start=now, last=now, value=0.0)
        sample["value"] += value
        sample["last"] = now

    def measure(self, now: int) -> tuple[float, float]:
        """The sum, and the time since the oldest start."""
        if not self.ring:
            self.ring.append({"start": now, "last": now, "value": 0.0})
        for sample in self.ring:
            if now - sample["last"] >= self.samples * self.window:
                sample.update(start=now, last=now, value=0.0)
        return sum(s["value"] for s in self.ring), now - min(s["start"] for s in self.ring)


class NaiveSampled(Samples):
    def rate(self, now: int) -> tuple[float, float]:
        total, elapsed = self.measure(now)
        full = elapsed // self.window
        if full < self.samples - 1:
            elapsed += (self.samples - 1 - full) * self.window
        divisor = max(elapsed, 1)
        return total / (divisor / 1000), divisor


class NaiveSimple(Samples):
    def rate(self, now: int) -> tuple[float, float]:
        total, elapsed = self.measure(now)
        divisor = max(elapsed, self.window)
        return total / (divisor / 1000), divisor


def naive_wait_ms(rate: float, divisor: float, limit: float) -> int:
    return 0 if rate <= limit else math.floor((rate - limit) / limit * divisor + 0.5)


def steps(window: int) -> st.SearchStrategy[list[tuple[int, float | None]]]:
    """(milliseconds later, what to record; None: only measure), more often than not at a window's edge."""
    edges = st.sampled_from(
        [0, 1, window - 1, window, window + 1, 2 * window, 3 * window, 11 * window, 12 * window]
    )
    later = st.one_of(edges, st.integers(0, 3 * window), st.integers(0, 15 * window))
    value = st.one_of(st.none(), st.integers(-100, 10_000), st.floats(0, 1e6))
    return st.lists(st.tuples(later, value), max_size=60)


@pytest.mark.parametrize(("rate", "naive"), [(SampledRate, NaiveSampled), (SimpleRate, NaiveSimple)])
@given(samples=st.sampled_from([1, 2, 3, 11]), window=st.sampled_from([100, 1000, 2500]), data=st.data())
def test_windowed_rates_are_kafkas(
    rate: type[SampledRate | SimpleRate],
    naive: type[NaiveSampled | NaiveSimple],
    samples: int,
    window: int,
    data: st.DataObject,
) -> None:
    ours, theirs = rate(samples, window / 1000), naive(samples, window)
    limit = data.draw(st.sampled_from([0.5, 1, 1000, 123_456]))
    now = data.draw(st.integers(0, 10**12))
    for later, value in data.draw(steps(window)):
        now += later
        if value is not None:
            ours.record(value, now / 1000)
            theirs.record(value, now)
            continue
        expected, divisor = theirs.rate(now)
        assert ours.measure(now / 1000) == pytest.approx(expected, rel=CLOSE, abs=1e-6)
        wait = naive_wait_ms(expected, divisor, limit) / 1000
        assert ours.throttle_seconds(limit, now / 1000) == pytest.approx(wait, rel=CLOSE, abs=0.001)


@given(
    rate=st.sampled_from([0.5, 5, 1000, 1e6]),
    burst=st.sampled_from([0, 1, 500, 1e6]),
    start=st.integers(0, 10**12),
    uses=st.lists(st.tuples(st.integers(0, 5000), st.integers(-10_000, 10_000)), max_size=60),
)
def test_token_bucket_is_kafkas_on_whole_milliseconds(
    rate: float, burst: float, start: int, uses: list[tuple[int, int]]
) -> None:
    bucket = TokenBucket(rate, burst)
    tokens, now = float(burst), start
    for later, value in uses:
        now += later
        tokens = min(burst, min(burst, tokens + rate * (later / 1000)) - value)
        bucket.record(value, now / 1000)
        assert bucket.measure(now / 1000) == pytest.approx(tokens, rel=CLOSE, abs=1e-6)
        wait = -tokens / rate if tokens < 0 else 0.0
        assert bucket.throttle_seconds(rate, now / 1000) == pytest.approx(wait, rel=CLOSE, abs=1e-6)


@given(
    rate=st.floats(0.1, 1e7),
    uses=st.lists(st.tuples(st.floats(0, 3), st.integers(0, 10**7)), min_size=1, max_size=30),
)
def test_token_bucket_is_out_of_debt_after_the_wait(rate: float, uses: list[tuple[float, int]]) -> None:
    bucket, now = TokenBucket(rate, rate), 1000.0
    for later, value in uses:
        now += later
        bucket.record(value, now)
        wait = bucket.throttle_seconds(rate, now)
        if wait > 1e-5:
            assert bucket.measure(now + wait * 0.9) < 0
            now += wait
            assert bucket.measure(now) >= -rate * 2e-6


@given(
    uses=st.lists(st.tuples(st.integers(0, 30_000), st.integers(0, 10**6)), max_size=40),
    last=st.integers(0, 10**5),
)
def test_ewma_rate_is_yammers(uses: list[tuple[int, int]], last: int) -> None:
    average = EwmaRate()
    kept = math.exp(-5 / 60)
    rate, ticked, uncounted, ticks, now = 0.0, False, 0.0, 0, 0
    average.measure(0.0)
    for later, value in [*uses, (last, 0)]:
        now += later
        while ticks < now // 5000:
            instant = uncounted / 5
            rate = rate + (1 - kept) * (instant - rate) if ticked else instant
            ticked, uncounted, ticks = True, 0.0, ticks + 1
        uncounted += value
        average.record(value, now / 1000)
        assert average.measure(now / 1000) == pytest.approx(rate, rel=1e-6, abs=1e-9)


@given(
    uses=st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 10**6)), min_size=1, max_size=20),
    limit=st.floats(1, 10**5),
)
def test_ewma_rate_is_back_at_the_limit_after_the_wait_and_not_before(
    uses: list[tuple[int, int]], limit: float
) -> None:
    average, now = EwmaRate(), 0
    for later, value in uses:
        now += later
        average.record(value, now / 1000)
    wait = average.throttle_seconds(limit, now / 1000)
    if wait > 0:
        assert average.measure(now / 1000 + wait - 0.001) > limit * (1 - CLOSE)
    assert average.measure(now / 1000 + wait) <= limit * (1 + CLOSE)
