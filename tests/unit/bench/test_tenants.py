"""What is made of the figures of many tenants."""

import pytest

from bench.tenants import report


@pytest.mark.parametrize(("many", "word"), [(11.0, "met"), (11.2, "missed")])
def test_the_best_rounds_are_compared(many: float, word: str) -> None:
    rest = {"p99_ms": 1.5, "peak_rss_mib": 60.0}
    found = {
        "10": [{"cpu_ms_per_1k_req": 12.0, **rest}, {"cpu_ms_per_1k_req": 10.0, **rest}],
        "5 of 9": [{"cpu_ms_per_1k_req": many, **rest}],
    }
    lines = report({"a way": dict(found)})
    assert "| a way | 10 | 10.0 | 1.50 | 60 |" in lines
    assert lines[-1] == (
        f"- a way: with many tenants a request takes {many / 10:.2f} times the CPU; at most 1.1: {word}"
    )
