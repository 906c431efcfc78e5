"""LogLimit: a few lines for each cause, a count of the others, and bounded memory."""

import logging

import pytest

from proxy.server.logs.log_limit import CAUSES_AT_MOST, LINES, WINDOW_SECONDS, LogLimit

log = logging.getLogger("tests.log_limit")


def test_each_cause_has_its_own_lines(caplog: pytest.LogCaptureFixture) -> None:
    limit = LogLimit(log, "clients")
    for number in range(LINES + 3):
        limit.warn("a", 0.0, "a %d", number)
    limit.warn("b", 0.5, "b")
    assert caplog.messages == [*(f"a {number}" for number in range(LINES)), "b"]


def test_omitted_lines_are_counted_once_when_the_window_ends(caplog: pytest.LogCaptureFixture) -> None:
    limit = LogLimit(log, "clients")
    for _ in range(LINES + 3):
        limit.warn("a", 0.0, "a")
    limit.flush(WINDOW_SECONDS / 2)
    assert len(caplog.records) == LINES
    limit.flush(WINDOW_SECONDS)
    limit.flush(2 * WINDOW_SECONDS)
    assert [record.args for record in caplog.records[LINES:]] == [("clients", 3, "a")]


def test_the_next_window_has_lines_again(caplog: pytest.LogCaptureFixture) -> None:
    limit = LogLimit(log, "clients")
    for _ in range(LINES + 3):
        limit.warn("a", 0.0, "a")
    limit.warn("a", WINDOW_SECONDS, "again")
    assert caplog.records[LINES].args == ("clients", 3, "a")
    assert caplog.messages[LINES + 1 :] == ["again"]


def test_a_line_that_is_not_allowed_is_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    limit = LogLimit(log, "topics")
    assert [limit.allows("a", 0.0) for _ in range(LINES + 2)] == [True] * LINES + [False] * 2
    limit.flush(WINDOW_SECONDS)
    assert caplog.records == []
    assert limit.allows("a", WINDOW_SECONDS)


def test_memory_is_bounded_and_no_count_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    limit = LogLimit(log, "clients")
    for _ in range(LINES + 1):
        limit.warn("first", 0.0, "first")
    caplog.clear()
    for number in range(CAUSES_AT_MOST + 10):
        limit.warn(str(number), 0.0, "line")
    assert len(limit._windows) == CAUSES_AT_MOST
    assert [record.args for record in caplog.records if record.msg != "line"] == [("clients", 1, "first")]
