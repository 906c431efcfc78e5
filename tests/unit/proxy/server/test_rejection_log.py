"""The log says what was rejected: not every time, and nothing twice."""

import logging

from proxy.server import rejection_log
from proxy.server.rejection_log import RejectionLog
from proxy.wire.views import NO_ID, Item, RequestView
from tests.unit.proxy.telemetry.metrics.test_rejections import WHO, rejecting


def test_a_line_now_and_then_with_what_has_come_since(caplog):
    caplog.set_level(logging.WARNING)
    engines, now = rejecting(), [5.0]
    made = RejectionLog(engines, lambda: now[0])
    made.look()
    assert [record.getMessage() for record in caplog.records] == [
        "broker 1, topic orders: 300 bytes of 1 Produce requests rejected (bytes.in.per.sec.threshold), "
        "the last of client id 'c' (user u): 200 B/s of 50; the broker's 200 B/s of 100"
    ]
    caplog.clear()
    request = RequestView(0, 9, 1, "c", 5000)
    request.items = [Item("orders", NO_ID, 0, 70)]
    for _ in range(3):
        engines.engine(1, now[0]).reject(request, WHO, now[0])
        made.look()
    assert caplog.records == []
    now[0] += rejection_log.LOG_EVERY_SECONDS
    made.look()
    made.look()
    (record,) = caplog.records
    assert "210 bytes of 3 Produce requests" in record.getMessage()
    now[0] += rejection_log.LOG_EVERY_SECONDS
    made.look()
    assert len(caplog.records) == 1
