import pytest

from bench.attacks.neighbour import Latencies
from bench.attacks.report import PROXY, Measured, report


@pytest.mark.parametrize(
    ("p99", "longest", "verdict"),
    [(1.5, 50.0, "met"), (1.6, 20.0, "missed by a"), (1.0, 51.0, "missed by a")],
)
def test_the_target(p99: float, longest: float, verdict: str) -> None:
    calm, attacked = Latencies(10, 0.5, 1.0, 2.0), Latencies(10, 0.5, p99, longest)
    lines = report([Measured("a", PROXY, calm, attacked, 7, 1), Measured("b", "Kafka", calm, attacked, 7, 1)])
    assert lines[2] == f"| a | proxy | 1.0 | {p99:.1f} | {p99:.2f} | {longest:.1f} | 7 | 1 |"
    assert lines[-1].endswith(f": {verdict}")
