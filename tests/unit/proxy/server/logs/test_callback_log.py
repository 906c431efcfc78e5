import logging

import pytest

from proxy.quota.limits.limit_source import LimitSource
from proxy.server.logs.callback_log import LOG_EVERY_SECONDS, CallbackLog


class Failing(LimitSource):
    def __init__(self) -> None:
        super().__init__()
        self.failures: list[str] = []

    def take_failure(self) -> str:
        return self.failures.pop() if self.failures else ""


def test_a_failure_is_logged_once_and_not_too_often(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    source, now = Failing(), 100.0
    failures = CallbackLog(lambda: source, lambda: now)
    failures.check()
    assert not caplog.records
    source.failures = ["second", "first"]
    failures.check()
    now += LOG_EVERY_SECONDS - 0.1
    failures.check()
    assert [record.getMessage() for record in caplog.records] == ["first"]
    now += 0.1
    failures.check()
    assert [record.getMessage() for record in caplog.records] == ["first", "second"]


def test_without_a_source_there_is_nothing_to_log(caplog: pytest.LogCaptureFixture) -> None:
    CallbackLog(lambda: None, lambda: 100.0).check()
    assert not caplog.records
