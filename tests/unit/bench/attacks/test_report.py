import pytest

from bench.attacks.neighbour import Latencies
from bench.attacks.report import NATIVE, PROXY, Measured, report, report_turns
from bench.attacks.turns import TurnTimes

CALM = Latencies(10, 0.5, 1.0, 2.0)


@pytest.mark.parametrize(
    ("p99", "longest", "verdict"),
    [(1.5, 50.0, "met"), (1.6, 20.0, "missed by end_txn"), (1.0, 51.0, "missed by end_txn")],
)
def test_the_target(p99: float, longest: float, verdict: str) -> None:
    attacked = Latencies(10, 0.5, p99, longest)
    lines = report([
        Measured("end_txn", PROXY, CALM, attacked, 7, 1, 0.25, (CALM, CALM)),
        Measured("metadata", PROXY, CALM, CALM, 7, 1, 0.25, (CALM, attacked)),
        Measured("metadata", NATIVE, CALM, attacked, 7, 1),
    ])  # fmt: skip
    assert lines[2] == f"| end_txn | proxy | 1.0 | {p99:.1f} | {p99:.2f} | {longest:.1f} | 7 | 1 | 0.2 |"
    assert lines[6].endswith(f": {verdict}")
    assert lines[7].endswith(f": {verdict.replace('end_txn', 'metadata')}")


def test_the_table_of_the_page() -> None:
    """It has a line for each attack, with what Kafka does alone, and with the same quota for the attacker."""
    attacked = Latencies(10, 0.5, 1.26, 12.6)
    lines = report([
        Measured("end_txn", PROXY, CALM, attacked, 1234, 1, 0.25, (CALM, CALM)),
        Measured("tls_handshakes", PROXY, CALM, attacked, 7, 1, 0.25, (CALM, CALM)),
        Measured("end_txn", NATIVE, CALM, Latencies(10, 0.5, 120.4, 121.6), 56, 1),
    ])  # fmt: skip
    assert lines[-2:] == [
        "| EndTxn of a producer that does not exist | 1.3 | 13 | 1.0 | 2.0 | 120 | 122 | 1,234 | 56 |",
        "| TLS handshakes, one after the other on 50 connections | 1.3 | 13 | 1.0 | 2.0 | - | - | 7 | - |",
    ]


def test_turns() -> None:
    found = Measured("a", PROXY, CALM, CALM, 7, 1, turns=TurnTimes(1000, 0.1, 0.25, 1.0, 5.0))
    assert report_turns([found])[2:] == ["| a | 1000 | 0.10 | 0.25 | 1.00 | 5.00 |"]
