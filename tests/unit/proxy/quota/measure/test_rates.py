"""A table per rule; the numbers are worked out by hand from Kafka's formulas."""

import math
from collections.abc import Callable, Sequence

import pytest

from proxy.quota.measure.rates import EwmaRate, SampledRate, SimpleRate, TokenBucket

EVERY_RATE = [
    pytest.param(lambda: TokenBucket(10.0, 10.0), id="TokenBucket"),
    pytest.param(lambda: SampledRate(11, 1), id="SampledRate"),
    pytest.param(lambda: SimpleRate(11, 1), id="SimpleRate"),
    pytest.param(EwmaRate, id="EwmaRate"),
]
MakeRate = Callable[[], TokenBucket | SampledRate | SimpleRate | EwmaRate]
FILLED = [(float(second), 1000) for second in range(11)]
"""A thousand in each of eleven seconds: eleven samples."""


def ids(table: Sequence[tuple[object, ...]]) -> list[str]:
    return [str(row[0]) for row in table]


@pytest.mark.parametrize("make", EVERY_RATE)
def test_nothing_recorded_is_within_every_limit(make: MakeRate) -> None:
    assert make().throttle_seconds(10.0, 5.0) == 0.0
    assert make().measure(5.0) == (10.0 if make is EVERY_RATE[0].values[0] else 0.0)


@pytest.mark.parametrize("make", EVERY_RATE)
def test_a_time_before_the_latest_counts_as_the_latest(make: MakeRate) -> None:
    straight, bent = make(), make()
    for rate in (straight, bent):
        rate.record(40, 100.0)
        rate.record(7, 107.0)
    assert bent.measure(106.9) == straight.measure(107.0)
    assert bent.throttle_seconds(2.0, 103.0) == straight.throttle_seconds(2.0, 107.0)
    bent.record(5, 106.0)
    straight.record(5, 107.0)
    assert bent.measure(120.0) == straight.measure(120.0)


@pytest.mark.parametrize("make", EVERY_RATE)
@pytest.mark.parametrize("origin", [-50.0, 0.0, 1_700_000_000.0])
def test_only_differences_of_time_matter(make: MakeRate, origin: float) -> None:
    here, there = make(), make()
    for at, value in [(0.0, 30), (0.25, 30), (1.5, 30), (7.0, 1), (13.0, 90)]:
        here.record(value, 1000.0 + at)
        there.record(value, origin + at)
        assert there.measure(origin + at) == pytest.approx(here.measure(1000.0 + at))
        assert there.throttle_seconds(3.0, origin + at) == pytest.approx(
            here.throttle_seconds(3.0, 1000.0 + at)
        )


# name, rate, burst, uses (time, tokens taken), now, tokens then, seconds to wait
TOKENS = [
    ("starts full", 5, 500, [], 0.0, 500.0, 0.0),
    ("starts full on any clock", 5, 500, [], 1e9, 500.0, 0.0),
    ("the example of KIP-599", 5, 500, [(1.0, 560)], 1.0, -60.0, 12.0),
    ("zero is no debt", 5, 500, [(1.0, 500)], 1.0, 0.0, 0.0),
    ("a debt has no floor", 5, 500, [(1.0, 10_500)], 1.0, -10_000.0, 2000.0),
    ("refills with time", 5, 500, [(1.0, 560)], 5.0, -40.0, 8.0),
    ("refills up to the burst", 5, 500, [(1.0, 100)], 31.0, 500.0, 0.0),
    ("a full bucket gains nothing by waiting", 5, 500, [(1.0, 0), (100.0, 500)], 100.0, 0.0, 0.0),
    ("refills before it takes", 5, 500, [(1.0, 560), (13.0, 1)], 13.0, -1.0, 0.2),
    ("gives back", 5, 500, [(1.0, 560), (1.0, -60)], 1.0, 0.0, 0.0),
    ("gives back up to the burst", 5, 500, [(1.0, 10), (1.0, -60)], 1.0, 500.0, 0.0),
    ("no burst at all", 5, 0, [(1.0, 1)], 1.0, -1.0, 0.2),
    ("the wait is not rounded", 1_000_000, 0, [(1.0, 1)], 1.0, -1.0, 1e-6),
    ("microseconds count", 1_000_000, 0, [(1.0, 1000)], 1.000_25, -750.0, 0.000_75),
    ("no refill, no end", 0, 1, [(1.0, 2)], 9.0, -1.0, math.inf),
]


@pytest.mark.parametrize(("name", "rate", "burst", "uses", "now", "tokens", "wait"), TOKENS, ids=ids(TOKENS))
def test_token_bucket(
    name: str, rate: int, burst: int, uses: list[tuple[float, int]], now: float, tokens: float, wait: float
) -> None:
    bucket = TokenBucket(rate, burst)
    for at, value in uses:
        bucket.record(value, at)
    assert bucket.measure(now) == pytest.approx(tokens)
    assert bucket.throttle_seconds(rate, now) == pytest.approx(wait)
    assert bucket.take(0, now) == bucket.throttle_seconds(rate, now)
    assert bucket.take(1, now) == bucket.throttle_seconds(rate, now)


def test_token_bucket_is_exact_on_whole_milliseconds() -> None:
    bucket = TokenBucket(1000.0, 0.0)
    bucket.record(200, 1000.1)
    assert 1000.3 - 1000.1 < 0.2
    assert bucket.measure(1000.3) == 0.0


def test_token_bucket_refills_at_the_old_rate_until_it_is_configured() -> None:
    bucket = TokenBucket(10.0, 100.0)
    bucket.record(150, 0.0)
    bucket.configure(1.0, 10.0, 2.0)
    assert bucket.measure(2.0) == -30.0
    assert bucket.measure(12.0) == -20.0


@pytest.mark.parametrize(("burst", "tokens"), [(10.0, 10.0), (100.0, 60.0), (1000.0, 60.0)])
def test_token_bucket_clips_tokens_to_a_new_burst_and_never_rescales_them(
    burst: float, tokens: float
) -> None:
    bucket = TokenBucket(10.0, 100.0)
    bucket.record(40, 0.0)
    bucket.configure(10.0, burst, 0.0)
    assert bucket.measure(0.0) == tokens


# name, samples, window, uses (time, value), now, rate then, limit, seconds to wait
SAMPLED = [
    ("ten windows' worth at once", 11, 1, [(5.0, 10_000)], 5.0, 1000.0, 1000, 0.0),
    ("right at the limit", 11, 1, [(5.0, 10_000), (5.0, 0)], 5.0, 1000.0, 1000, 0.0),
    ("over the limit", 11, 1, [(5.0, 15_000)], 5.0, 1500.0, 1000, 5.0),
    ("a started window counts, the missing are added", 11, 1, [(5.0, 10_500)], 5.5, 1000.0, 500, 10.5),
    ("a whole window replaces a missing one", 11, 1, [(5.0, 10_000)], 6.0, 1000.0, 500, 10.0),
    ("after ten windows none is missing", 11, 1, FILLED, 10.4, 11_000 / 10.4, 1000, 0.6),
    ("eleven samples and the overlapping one", 11, 1, [*FILLED, (0.9, 0)], 10.4, 11_000 / 10.4, 1000, 0.6),
    (
        "the overlapping sample is kept by its last use",
        2,
        1,
        [(0.0, 50), (0.9, 50), (1.0, 10)],
        2.8,
        110 / 2.8,
        99,
        0.0,
    ),
    (
        "and goes when that is two windows old",
        2,
        1,
        [(0.0, 50), (0.9, 50), (1.0, 10)],
        2.9,
        10 / 1.9,
        99,
        0.0,
    ),
    ("the ring reuses its oldest", 1, 1, [(0.0, 70), (1.0, 20), (1.9, 3), (2.0, 4)], 2.0, 27.0, 99, 0.0),
    ("a sample starts with its first use", 2, 1, [(0.0, 1), (1.8, 20), (2.7, 3)], 2.7, 23 / 1.9, 99, 0.0),
    ("idle for all windows: nothing", 11, 1, FILLED, 21.0, 0.0, 1000, 0.0),
    ("idle but for the newest", 11, 1, FILLED, 20.9, 1000 / 10.9, 10, 89.1),
    ("starts anew after idling", 11, 1, [*FILLED, (30.0, 10_000)], 30.0, 1000.0, 500, 10.0),
    ("one sample: no window is added", 1, 1, [(0.0, 5)], 0.5, 10.0, 5, 0.5),
    ("one sample, at once: a millisecond", 1, 1, [(0.0, 5)], 0.0, 5000.0, 5000, 0.0),
    ("longer windows", 3, 10, [(0.0, 6000)], 5.0, 240.0, 200, 5.0),
    ("half a millisecond of wait rounds up", 3, 1, [(0.0, 4001)], 0.0, 2000.5, 2000, 0.001),
    ("less than half rounds down", 11, 1, [(0.0, 30_001)], 0.0, 3000.1, 3000, 0.0),
    ("time is taken to the nearest millisecond", 2, 1, [(0.000_55, 3)], 1.0, 3 / 1.999, 9, 0.0),
    ("a negative value gives back", 11, 1, [(0.0, 9000), (0.0, -4000)], 0.0, 500.0, 1000, 0.0),
    ("nothing may pass", 11, 1, [(0.0, 1)], 0.0, 0.1, 0, math.inf),
]


@pytest.mark.parametrize(
    ("name", "samples", "window", "uses", "now", "rate", "limit", "wait"), SAMPLED, ids=ids(SAMPLED)
)
def test_sampled_rate(
    name: str,
    samples: int,
    window: int,
    uses: list[tuple[float, int]],
    now: float,
    rate: float,
    limit: int,
    wait: float,
) -> None:
    sampled = SampledRate(samples, window)
    for at, value in uses:
        sampled.record(value, at)
    assert sampled.measure(now) == pytest.approx(rate)
    assert sampled.throttle_seconds(limit, now) == wait


def test_sampled_rate_measured_before_its_first_use_starts_its_window_then() -> None:
    sampled = SampledRate(11, 1)
    sampled.measure(100.0)
    sampled.record(1050, 100.5)
    assert sampled.measure(100.5) == pytest.approx(100.0)


def test_the_excess_over_the_mean_of_a_limit_is_paid_at_the_present_limit() -> None:
    rate = SampledRate(11, 1.0)
    assert rate.covered_seconds(100.0) == 10.0
    rate.record(300.0, 100.0)
    assert rate.throttle_seconds(20.0, 100.0) == rate.excess_seconds(20.0, 20.0, 100.0) == 5.0
    assert rate.excess_seconds(20.0, 50.0, 100.0) == 2.0
    assert rate.excess_seconds(30.0, 10.0, 100.0) == 0.0
    assert rate.excess_seconds(20.0, 0.0, 100.0) == math.inf
    assert rate.covered_seconds(105.5) == 10.5


def test_measuring_resets_old_samples_at_that_time() -> None:
    sampled = SampledRate(2, 1)
    sampled.record(10, 0.0)
    assert sampled.measure(2.0) == 0.0
    sampled.record(30, 2.5)
    assert sampled.measure(2.5) == pytest.approx(30 / 1.5)


# name, samples, window, uses, now, rate then, limit, seconds to wait
SIMPLE = [
    ("one window at least", 11, 1, [(5.0, 500)], 5.0, 500.0, 400, 0.25),
    ("within the first window", 11, 1, [(5.0, 500)], 5.9, 500.0, 500, 0.0),
    ("then the time since the first", 11, 1, [(5.0, 500)], 7.5, 200.0, 100, 2.5),
    ("all samples", 11, 1, FILLED, 10.0, 1100.0, 1000, 1.0),
    ("old samples go", 11, 1, FILLED, 15.0, 600.0, 600, 0.0),
    ("idle for all windows: nothing", 11, 1, FILLED, 21.0, 0.0, 1000, 0.0),
    ("longer windows", 2, 10, [(0.0, 500)], 3.0, 50.0, 40, 2.5),
    ("stopped altogether", 11, 1, [(5.0, 1)], 5.0, 1.0, 0, math.inf),
]


@pytest.mark.parametrize(
    ("name", "samples", "window", "uses", "now", "rate", "limit", "wait"), SIMPLE, ids=ids(SIMPLE)
)
def test_simple_rate(
    name: str,
    samples: int,
    window: int,
    uses: list[tuple[float, int]],
    now: float,
    rate: float,
    limit: int,
    wait: float,
) -> None:
    simple = SimpleRate(samples, window)
    for at, value in uses:
        simple.record(value, at)
    assert simple.measure(now) == pytest.approx(rate)
    assert simple.throttle_seconds(limit, now) == wait


@pytest.mark.parametrize("rate", [SampledRate, SimpleRate])
@pytest.mark.parametrize(("samples", "window"), [(0, 1.0), (-1, 1.0), (11, 0.0), (11, 0.0001), (11, -1.0)])
def test_a_rate_over_nothing_is_rejected(
    rate: type[SampledRate] | type[SimpleRate], samples: int, window: float
) -> None:
    with pytest.raises(ValueError, match=rf"(samples|window_seconds) is ({samples}|{window});"):
        rate(samples, window)


KEPT = math.exp(-5 / 60)
# name, uses, now, rate then
AVERAGES = [
    ("before the first tick", [(0.0, 600)], 4.999, 0.0),
    ("the first tick sets it", [(0.0, 600)], 5.0, 120.0),
    ("it stands still between ticks", [(0.0, 600), (5.0, 900)], 9.999, 120.0),
    ("the next tick moves it", [(0.0, 600), (5.0, 900)], 10.0, 120 + (1 - KEPT) * (180 - 120)),
    ("a use at a tick belongs to the next", [(0.0, 600), (5.0, 600)], 10.0, 120.0),
    ("it decays", [(0.0, 600)], 65.0, 120 * KEPT**12),
    ("a minute takes it to 1/e", [(0.0, 600)], 65.0, 120 / math.e),
    ("late ticks are made up for", [(0.0, 600), (64.0, 600)], 65.0, 120 * KEPT**12 + 120 * (1 - KEPT)),
    ("an idle start", [(0.0, 0), (7.0, 600)], 10.0, 120 * (1 - KEPT)),
    ("ticks count from the first call", [(3.0, 600)], 7.999, 0.0),
]


@pytest.mark.parametrize(("name", "uses", "now", "rate"), AVERAGES, ids=ids(AVERAGES))
def test_ewma_rate(name: str, uses: list[tuple[float, int]], now: float, rate: float) -> None:
    average = EwmaRate()
    for at, value in uses:
        average.record(value, at)
    assert average.measure(now) == pytest.approx(rate)


def test_ewma_rate_with_other_times() -> None:
    average = EwmaRate(window_seconds=10.0, tick_seconds=1.0)
    average.record(100, 0.0)
    assert average.measure(1.0) == 100.0
    assert average.measure(11.0) == pytest.approx(100 / math.e)


# name, uses, limit, now, seconds to wait
AVERAGE_WAITS = [
    ("within", [(0.0, 600)], 120, 5.0, 0.0),
    ("not yet averaged", [(0.0, 10**9)], 120, 1.0, 0.0),
    ("until the next tick", [(0.0, 600)], 119, 6.0, 4.0),
    ("twelve ticks take it below 1/e", [(0.0, 600)], 120 / math.e + 1e-6, 5.0, 60.0),
    ("what is not yet averaged counts", [(0.0, 600), (5.0, 600)], 119, 5.0, 10.0),
    ("an average never reaches nothing", [(0.0, 600)], 0, 5.0, math.inf),
]


@pytest.mark.parametrize(("name", "uses", "limit", "now", "wait"), AVERAGE_WAITS, ids=ids(AVERAGE_WAITS))
def test_ewma_rate_waits_for_the_tick_that_brings_it_back(
    name: str, uses: list[tuple[float, int]], limit: float, now: float, wait: float
) -> None:
    average = EwmaRate()
    for at, value in uses:
        average.record(value, at)
    assert average.throttle_seconds(limit, now) == wait


@pytest.mark.parametrize(("window", "tick"), [(0.0, 5.0), (-1.0, 5.0), (60.0, 0.0), (60.0, -5.0)])
def test_an_average_over_nothing_is_rejected(window: float, tick: float) -> None:
    with pytest.raises(ValueError, match=rf"window_seconds is {window}, tick_seconds {tick};"):
        EwmaRate(window, tick)
