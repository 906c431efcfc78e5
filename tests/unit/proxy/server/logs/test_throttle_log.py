"""ThrottleLog: a throttle that is too low is logged, but not at every check."""

import pytest

from proxy.server.logs.throttle_log import LOG_EVERY_SECONDS, ThrottleLog
from tests.support.simulations.move import MEBIBYTE, Fetcher, copies, quotas, run, throttled

RATE = 4 * MEBIBYTE


def test_without_replication_quotas_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    ThrottleLog(lambda: None, lambda: 0.0).check()
    assert caplog.records == []


def test_a_throttle_that_is_too_low_is_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    quota = quotas(throttled(RATE), [1])[1]
    fetcher = Fetcher(quota, 2, copies(2, 1, 50_000_000))
    now = [0.0]
    throttles = ThrottleLog(lambda: quota.shared, lambda: now[0])
    logged_at: list[float] = []
    for second in range(int(LOG_EVERY_SECONDS) + 30):
        fetcher.copies[0].size += 2 * RATE
        run([fetcher], second + 1)
        now[0] = fetcher.wakes_at
        throttles.check()
        logged_at += [now[0]] * (len(caplog.records) - len(logged_at))
    first, again = logged_at
    assert again - first >= LOG_EVERY_SECONDS
    assert all("broker 1" in message and str(RATE) in message for message in caplog.messages)
