"""Figures from samples."""

import pytest

from bench.output.summary import Figure, reference, summarize
from bench.rounds import Sample
from bench.scenarios import Scenario

CLOSED = Scenario("closed", "Closed", "produce", 100, 1000)
OPEN = Scenario("open", "Open", "produce", 100, 1000, rate=3000.0)


def sample(cpu: float, p99: float = 1.0, rss: float = 20.0, rate: float = 1000.0) -> Sample:
    return {
        "requests_per_s": rate,
        "mib_per_s": rate / 10,
        "p50_ms": p99 / 2,
        "p99_ms": p99,
        "cpu_ms_per_1k_req": cpu,
        "cpu_s_per_gib": cpu * 5,
        "peak_rss_mib": rss,
    }


def test_ratios_are_best_to_best_and_median_to_median() -> None:
    samples = {
        "haproxy": [sample(4), sample(5), sample(8)],
        "proxy": [sample(12), sample(6), sample(10)],
    }
    _, proxy = summarize(CLOSED, samples)
    assert proxy.cpu_ms_per_1k_req == Figure(6, 10)
    assert proxy.cpu_s_per_gib == Figure(30, 50)
    assert proxy.cpu_ratio == Figure(1.5, 2.0)


def test_the_best_throughput_is_the_highest_and_peak_memory_the_most() -> None:
    samples = {"proxy": [sample(1, rss=30, rate=10), sample(1, rss=50, rate=30), sample(1, rss=40, rate=20)]}
    (proxy,) = summarize(CLOSED, samples)
    assert proxy.requests_per_s == Figure(30, 20)
    assert proxy.peak_rss_mib == 50


def test_added_latency_is_to_the_direct_run_of_the_same_round() -> None:
    samples = {
        "direct": [sample(0, p99=1.0), sample(0, p99=3.0), sample(0, p99=1.0)],
        "proxy": [sample(6, p99=1.5), sample(6, p99=3.2), sample(6, p99=1.4)],
    }
    _, proxy = summarize(OPEN, samples)
    assert proxy.added_p99_ms is not None
    assert proxy.added_p99_ms.best == pytest.approx(0.2)
    assert proxy.added_p99_ms.median == pytest.approx(0.4)
    assert summarize(CLOSED, samples)[1].added_p99_ms is None


def test_direct_has_no_process_to_measure() -> None:
    (direct,) = summarize(CLOSED, {"direct": [sample(0)]})
    assert (direct.cpu_ms_per_1k_req, direct.cpu_ratio, direct.peak_rss_mib) == (None, None, None)


@pytest.mark.parametrize(
    ("peers", "expected"),
    [
        (["haproxy", "baseline", "proxy"], "baseline"),
        (["direct", "relay", "haproxy"], "haproxy"),
        (["direct", "relay"], "relay"),
        (["direct"], None),
    ],
)
def test_ratios_are_relative_to_the_first_reference_that_ran(peers: list[str], expected: str | None) -> None:
    assert reference(peers) == expected
