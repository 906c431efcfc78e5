"""Replication throttles that are too low for the followers of all workers together, in the log."""

import logging

import pytest

from proxy.server.logs.throttle_log import LOG_EVERY_SECONDS
from proxy.server.workers.throttle_sums import SummedThrottleLog
from proxy.telemetry.metrics.summed import LowThrottle
from proxy.telemetry.replication import STATED_AT_LEAST_SECONDS

LOW = LowThrottle("leader", "1", 1024.0, 3000.0, 4.0)


def test_a_throttle_that_stays_too_low_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    now = 100.0
    made = SummedThrottleLog(lambda: now)
    made.check([LOW])
    assert caplog.records == []
    now += STATED_AT_LEAST_SECONDS
    made.check([LOW])
    made.check([LOW])
    (record,) = caplog.records
    assert all(named in record.message for named in ("broker 1 ", " 1024 B/s", " 3000 B/s"))
    now += LOG_EVERY_SECONDS
    made.check([LOW, LOW._replace(broker="2")])
    assert len(caplog.records) == 2


def test_one_that_was_raised_meanwhile_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    made = SummedThrottleLog(lambda: now)
    made.check([LOW])
    made.check([])
    now += STATED_AT_LEAST_SECONDS
    made.check([LOW])
    assert caplog.records == []
