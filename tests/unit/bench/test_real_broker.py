"""What is made of the output of Kafka's performance tools."""

import pytest

from bench.real_broker import (
    CONSUME,
    DIRECT,
    HAPROXY,
    OFF,
    ON,
    PRODUCE,
    Found,
    Run,
    consumed,
    produced,
    report,
)

PRODUCED = """30001 records sent, 6000.2 records/sec (0.57 MB/sec), 3.1 ms avg latency, 9.0 ms max latency.
50000 records sent, 12345.600000 records/sec (1.18 MB/sec), 2.96 ms avg latency, 150.00 ms max latency
"""
CONSUMED = (
    "2026-11-27 12:00:00, 2026-11-27 12:00:02, 4.7684, 2.3842, 50000, 25000.0, 900, 1100, 4.33, 45454.5\n"
)


def test_the_throughput_of_the_tools() -> None:
    assert produced(PRODUCED, 50_000) == 12_345.6
    assert consumed(CONSUMED, 50_000) == 45_454.5


def test_tools_that_have_not_done_everything_fail() -> None:
    with pytest.raises(ValueError, match="has not sent 60000 records"):
        produced(PRODUCED, 60_000)
    with pytest.raises(ValueError, match="has not read 60000 records"):
        consumed(CONSUMED, 60_000)
    with pytest.raises(ValueError, match="has not sent"):
        produced("org.apache.kafka.common.errors.TimeoutException", 1)


def test_the_report() -> None:
    found: Found = {
        (100, PRODUCE, DIRECT): [Run(1000.0, 10.0, 0.0), Run(1200.0, 10.0, 0.0), Run(2000.0, 10.0, 0.0)],
        (100, PRODUCE, OFF): [Run(1200.0, 10.0, 1.0)],
        (100, PRODUCE, ON): [Run(1080.0, 10.0, 1.2)],
        (100, PRODUCE, HAPROXY): [Run(1140.0, 10.0, 0.5)],
        (100, CONSUME, DIRECT): [Run(500.0, 10.0, 0.0)],
    }
    lines = report(found)
    assert "| 100 B | produce | direct | 1,200 (1,000 to 2,000) | | | |" in lines
    assert f"| 100 B | produce | {OFF} | 1,200 (1,200 to 1,200) | 1.00 | 10% | met, met |" in lines
    assert f"| 100 B | produce | {ON} | 1,080 (1,080 to 1,080) | 0.90 | 12% | missed, missed |" in lines
    assert f"| 100 B | produce | {HAPROXY} | 1,140 (1,140 to 1,140) | 0.95 | 5% | |" in lines
    assert "| 100 B | consume | direct | 500 (500 to 500) | | | |" in lines
