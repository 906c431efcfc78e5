import pytest

from bench.attacks.neighbour import Latencies
from bench.attacks.report import PROXY, Measured, report, report_turns
from bench.attacks.turns import TurnTimes


@pytest.mark.parametrize(
    ("p99", "longest", "verdict"),
    [(1.5, 50.0, "met"), (1.6, 20.0, "missed by a"), (1.0, 51.0, "missed by a")],
)
def test_the_target(p99: float, longest: float, verdict: str) -> None:
    calm, attacked = Latencies(10, 0.5, 1.0, 2.0), Latencies(10, 0.5, p99, longest)
    lines = report([Measured("a", PROXY, calm, attacked, 7, 1), Measured("b", "Kafka", calm, attacked, 7, 1)])
    assert lines[2] == f"| a | proxy | 1.0 | {p99:.1f} | {p99:.2f} | {longest:.1f} | 7 | 1 |"
    assert lines[-1].endswith(f": {verdict}")


def test_turns() -> None:
    calm = Latencies(10, 0.5, 1.0, 2.0)
    found = Measured("a", PROXY, calm, calm, 7, 1, TurnTimes(1000, 0.1, 0.25, 1.0, 5.0))
    assert report_turns([found])[2:] == ["| a | 1000 | 0.10 | 0.25 | 1.00 | 5.00 |"]
