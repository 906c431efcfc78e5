"""What is made of the samples of one process and of several workers."""

from bench.workers import BROKER_CPU, report


def sample(cpu: float) -> dict[str, float]:
    """A run of 100,000 requests in two seconds."""
    return {
        "requests_per_s": 50_000.0,
        "seconds": 2.0,
        "cpu_s": cpu,
        "cpu_ms_per_1k_req": cpu * 10,
        "driver_cpu_s": 1.0,
        BROKER_CPU: 0.5,
    }


def test_the_median_round_and_the_range_of_all() -> None:
    lines = report({"workers: 2": [sample(1.5), sample(1.2), sample(1.3)]})
    assert lines[2:] == ["| workers: 2 | 50,000 | 13.0 (12.0 to 15.0) | 0.65 | 0.50 | 0.25 |"]


def test_without_a_proxy() -> None:
    assert (
        report({"no proxy": [sample(0.0)]})[2]
        == "| no proxy | 50,000 | 0.0 (0.0 to 0.0) | 0.00 | 0.50 | 0.25 |"
    )
