"""MeasuredReads: which reads are measured, and from when on."""

from time import monotonic

from proxy.relay.counters.traffic import Bytes
from proxy.relay.exchange import Client, Exchange
from proxy.server.connection.measured_reads import (
    LOOP_CLOCK_SECONDS,
    MEASURED_EVERY,
    MeasuredReads,
    event_at,
)


def test_the_second_read_is_measured_and_then_one_of_so_many() -> None:
    reads = MeasuredReads()
    now = monotonic() - 10.0
    measured = [place for place in range(1, 3 * MEASURED_EVERY) if reads.began(now) > 0.0]
    assert measured == [2, 2 + MEASURED_EVERY, 2 + 2 * MEASURED_EVERY]


def test_an_event_is_as_old_as_the_loops_clock_and_never_in_the_future() -> None:
    earlier = monotonic() - 10.0
    assert event_at(earlier) == earlier + LOOP_CLOCK_SECONDS
    assert event_at(monotonic() + 10.0) <= monotonic()


def test_the_time_of_a_request_is_that_of_both_ways() -> None:
    reads = MeasuredReads()
    exchange = Exchange(1, Client("u", "c", "a", Bytes(), b"c"))
    reads.forwarded(exchange, monotonic() - 10.0)
    assert reads.pending is exchange
    assert reads.responded(monotonic() - 5.0) >= 15.0
    assert reads.pending is None
