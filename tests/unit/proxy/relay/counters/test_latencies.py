"""Histograms of times: each time is in the first bucket whose bound is not below it."""

from bisect import bisect_left

import pytest

from proxy.quota.usage import API_KEYS
from proxy.relay.counters.latencies import BOUNDS, Histogram, Latencies
from proxy.wire.api_keys import FETCH, PRODUCE

LONGEST = 0.001 * 2 ** (BOUNDS - 1)
TIMES = [0.0, 0.0004, 0.001, 0.0011, 0.002, 0.004, 0.0041, 0.5, 1.024, 1.0251, LONGEST, LONGEST * 1.1, 1e6]


@pytest.mark.parametrize("seconds", TIMES)
def test_the_bucket_of_a_time(seconds: float) -> None:
    histogram = Histogram(1000)
    histogram.note(seconds)
    place = bisect_left(histogram.bounds, seconds)
    assert histogram.cumulative == [0] * place + [1] * (BOUNDS + 1 - place)
    assert histogram.total_seconds == seconds


def test_a_difference_of_the_loop_s_times_on_a_bound_is_below_it() -> None:
    """Doubles: 1000.008 - 1000.004 is not exactly 0.004."""
    histogram = Histogram(1000)
    histogram.note(1000.008 - 1000.004)
    assert histogram.cumulative[:3] == [0, 0, 1]


def test_a_negative_time_counts_as_none() -> None:
    histogram = Histogram(50)
    histogram.note(-1.0)
    assert (histogram.cumulative[0], histogram.total_seconds) == (1, 0.0)


def test_bounds() -> None:
    histogram = Histogram(50)
    assert histogram.bounds[:3] == [0.00005, 0.0001, 0.0002]
    assert len(histogram.bounds) == BOUNDS == len(histogram.cumulative) - 1


def test_apis_have_their_own_and_unknown_ones_share_one() -> None:
    latencies = Latencies(1000)
    for api_key in (FETCH, PRODUCE, FETCH, 32767, API_KEYS, -1):
        latencies.note(api_key, 0.5)
    found = {key: histogram.cumulative[-1] for key, histogram in latencies.used()}
    assert found == {PRODUCE: 1, FETCH: 2, API_KEYS - 1: 3}
