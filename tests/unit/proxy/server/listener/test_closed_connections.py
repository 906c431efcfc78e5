"""ClosedConnections: every end is counted, and rejected clients are logged now and then."""

import pytest

from proxy.server.listener.closed_connections import LOG_EVERY_SECONDS, ClosedConnections


def test_ends_are_counted_by_reason() -> None:
    closed = ClosedConnections("clients")
    for reason in ("idle", "client_closed", "idle"):
        closed.count(reason)
    assert closed.by_reason == {"idle": 2, "client_closed": 1}


def test_rejected_clients_are_counted_each_time_and_logged_by_reason_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    closed = ClosedConnections("clients", lambda: now[0])
    for reason in ("idle", "idle", "unknown_host"):
        closed.reject(reason, "10.0.0.1:5", "why")
    assert closed.by_reason == {"idle": 2, "unknown_host": 1}
    assert len(caplog.records) == 2
    now[0] += LOG_EVERY_SECONDS
    closed.reject("idle", "10.0.0.2:6", "another reason")
    last = caplog.messages[-1]
    assert len(caplog.records) == 3
    assert all(part in last for part in ("clients", "10.0.0.2:6", "another reason"))
