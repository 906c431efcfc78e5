"""RejectedAddresses: every rejection counts, few are logged."""

import pytest

from proxy.server.listener.brokers.rejected_addresses import (
    ADDRESSES_AT_MOST,
    AGAIN_SECONDS,
    RejectedAddresses,
)
from proxy.server.logs.log_limit import LINES, WINDOW_SECONDS


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_address_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    rejected = RejectedAddresses("clients", clock)
    for _ in range(3):
        rejected.reject("169.254.169.254", 80)
    assert rejected.count == 3
    (line,) = caplog.records
    assert "'169.254.169.254:80'" in line.getMessage()
    assert line.__dict__["listener"] == "clients"
    clock.now += AGAIN_SECONDS
    rejected.reject("169.254.169.254", 80)
    assert len(caplog.records) == 2


def test_many_addresses_fill_neither_the_log_nor_the_memory(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    rejected = RejectedAddresses("clients", clock)
    for port in range(2 * ADDRESSES_AT_MOST):
        rejected.reject("evil\n", port)
    assert len(caplog.records) == LINES
    assert all("\n" not in record.getMessage() for record in caplog.records)
    assert len(rejected._logged) == ADDRESSES_AT_MOST
    clock.now += WINDOW_SECONDS
    rejected.flush_log()
    assert str(2 * ADDRESSES_AT_MOST - LINES) in caplog.records[-1].getMessage()
