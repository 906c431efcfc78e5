"""ClosedConnections: every end is counted, and only a few of those with an error are logged."""

import logging

import pytest

from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR, PRODUCE_REJECTED, RelayError
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.server.logs.log_limit import LINES, WINDOW_SECONDS


def test_ends_are_counted_by_reason() -> None:
    closed = ClosedConnections("clients")
    for reason in ("idle", "client_closed", "idle"):
        closed.count(reason)
    assert closed.by_reason == {"idle": 2, "client_closed": 1}


def test_rejected_clients_are_counted_each_time_and_logged_a_few_times_per_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    closed = ClosedConnections("clients", lambda: now[0])
    for _ in range(100):
        for reason in ("idle", "unknown_host"):
            closed.reject(reason, "10.0.0.1:5", "why")
    assert closed.by_reason == {"idle": 100, "unknown_host": 100}
    assert len(caplog.records) == 2 * LINES
    now[0] += WINDOW_SECONDS
    closed.flush_log()
    assert [record.args for record in caplog.records[2 * LINES :]] == [
        ("clients", 100 - LINES, "idle"),
        ("clients", 100 - LINES, "unknown_host"),
    ]
    closed.reject("idle", "10.0.0.2:6", "another reason")
    assert caplog.records[-1].args == ("clients", "10.0.0.2:6", "another reason")


def test_a_flood_of_bad_connections_writes_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    closed = ClosedConnections("clients", lambda: 0.0)
    for port in range(7812):
        closed.failed(f"10.0.0.1:{port}", 1, RelayError(CLIENT_PROTOCOL_ERROR, "not Kafka"))
        closed.accept_failed(OSError(24, "too many open files"))
    assert len(caplog.records) == 2 * LINES


def test_rejected_records_are_logged_by_topic_and_not_by_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    ClosedConnections("clients").failed("10.0.0.1:5", 1, RelayError(PRODUCE_REJECTED, "over"))
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]
