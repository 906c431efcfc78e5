"""What is made of the waits beside scrapes."""

import pytest

from bench.stall import QUIET, SCRAPED, report


@pytest.mark.parametrize(("longest", "word"), [(0.034, "met"), (0.036, "missed")])
def test_what_scrapes_add(longest: float, word: str) -> None:
    found = {QUIET: [0.001] * 99 + [0.010], SCRAPED: [0.001] * 99 + [longest]}
    scrapes = [
        {"count": 3.0, "bytes": 9000.0, "slowest_s": 0.2},
        {"count": 1.0, "bytes": 3000.0, "slowest_s": 0.1},
    ]
    lines = report(found, scrapes)
    assert f"| {QUIET} | 100 | 1.00 | 10.00 | 10.00 |" in lines
    assert lines[-2] == "- 4 scrapes of 3 kB each on average; the slowest took 200 ms"
    assert lines[-1].startswith(f"- Scrapes add {(longest - 0.010) * 1000:.1f} ms")
    assert lines[-1].endswith(word)
