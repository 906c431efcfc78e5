"""RejectionLog: rejections are logged now and then, and each is in one line only."""

import logging

import pytest

from proxy.quota.kinds import broker_bytes_in
from proxy.quota.kinds.broker_bytes_in import BrokerBytesIn, ErrorBytes
from proxy.quota.limits.config_keys import BYTES_IN_THRESHOLD
from proxy.quota.rejection.rejections import RejectedTopic
from proxy.server.logs import rejection_log
from proxy.server.logs.log_limit import LINES
from proxy.server.logs.rejection_log import RejectionLog
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView
from tests.unit.proxy.telemetry.metrics.families.test_rejections import WHO, rejecting


def test_a_line_now_and_then_with_what_was_rejected_since(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    engines, now = rejecting(), [5.0]
    made = RejectionLog(engines, lambda: now[0])
    made.check()
    (record,) = caplog.records
    assert record.args is not None
    *fields, total = record.args
    assert fields == [1, "orders", 300, 1, BYTES_IN_THRESHOLD.name, "c", "u", 200.0, "50 B/s"]
    assert all(number in str(total) for number in ("200", "100"))
    caplog.clear()
    request = RequestView(0, 9, 1, "c", 5000)
    request.items = [Item("orders", NO_ID, 0, 70)]
    for _ in range(3):
        engines.engine(1, now[0]).reject(request, WHO, now[0])
        made.check()
    assert caplog.records == []
    now[0] += rejection_log.LOG_EVERY_SECONDS
    made.check()
    made.check()
    (record,) = caplog.records
    assert record.args is not None
    assert tuple(record.args)[2:4] == (210, 3)
    now[0] += rejection_log.LOG_EVERY_SECONDS
    made.check()
    assert len(caplog.records) == 1


def test_a_process_that_shares_names_its_part_and_the_threshold(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    engines = rejecting()
    for bucket in engines.shared_buckets(5.0):
        bucket.share(0.5, 5.0)
    request = RequestView(0, 9, 1, "c", 5000)
    request.items = [Item("orders", NO_ID, 0, 70)]
    engines.engine(1, 5.0).reject(request, WHO, 5.0)
    RejectionLog(engines, lambda: 5.0).check()
    (record,) = caplog.records
    assert "threshold 25 B/s, this process's part of 50 B/s; whole broker: " in record.message
    assert record.message.endswith(" B/s, threshold 50 B/s, this process's part of 100 B/s")


def test_many_topics_share_the_lines_of_a_second_and_each_is_logged_in_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    engines, now = rejecting(), [5.0]
    made = RejectionLog(engines, lambda: now[0])
    topics = {f"t{number}" for number in range(4 * LINES)}
    counts = engines.engine(1, now[0]).rejections.topics
    for topic in topics:
        counts[topic, BYTES_IN_THRESHOLD.name] = rejected = RejectedTopic()
        rejected.requests = 1
    for _ in range(len(topics) // LINES + 1):
        caplog.clear()
        made.check()
        assert len(caplog.records) <= LINES
        topics -= {str(record.args[1]) for record in caplog.records if isinstance(record.args, tuple)}
        now[0] += rejection_log.CHECK_SECONDS
    assert topics == set()


def test_what_the_broker_itself_rejects_has_a_line_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    engines, now = rejecting(), [5.0]
    made = RejectionLog(engines, lambda: now[0])
    made.check()
    caplog.clear()
    (quota,) = engines.of_kind(broker_bytes_in.KIND)
    assert isinstance(quota, BrokerBytesIn)
    quota.errors["orders", 10] = errors = ErrorBytes()
    quota.errors["orders", 32000] = other = ErrorBytes()
    for size in (300, 400):
        errors.bytes += size
        errors.partitions += 1
        made.check()
    other.partitions = 1
    made.check()
    assert [record.args for record in caplog.records] == [
        (1, "orders", 300, 1, "MESSAGE_TOO_LARGE"),
        (1, "orders", 0, 1, "error 32000"),
    ]
    caplog.clear()
    now[0] += rejection_log.LOG_EVERY_SECONDS
    made.check()
    made.check()
    assert [record.args for record in caplog.records] == [(1, "orders", 400, 1, "MESSAGE_TOO_LARGE")]


def test_many_errors_share_the_lines_of_a_second(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    engines = rejecting()
    made = RejectionLog(engines, lambda: 5.0)
    (quota,) = engines.of_kind(broker_bytes_in.KIND)
    assert isinstance(quota, BrokerBytesIn)
    for number in range(4 * LINES):
        quota.errors[f"t{number}", 10] = errors = ErrorBytes()
        errors.partitions = 1
    made.check()
    of_broker = [record for record in caplog.records if record.args and "MESSAGE_TOO_LARGE" in record.args]
    assert len(of_broker) == LINES
