"""What is made of shares and latencies."""

import pytest

from bench.fairness import report


@pytest.mark.parametrize(("least", "shared"), [(0.4, "met"), (0.39, "missed")])
@pytest.mark.parametrize(("after", "left_alone"), [(3.0, "met"), (3.1, "missed")])
def test_targets(least: float, shared: str, after: float, left_alone: str) -> None:
    lines = report([1 - least, least], [2.0, 2.0, 2.0], [after, 9.0, 1.0])
    assert lines[-2] == f"- Of two equal producers the lesser gets {least:.0%}; at least 40%: {shared}"
    assert lines[-1].endswith(f"p99 is {after / 2:.2f} times; at most 1.5: {left_alone}")
