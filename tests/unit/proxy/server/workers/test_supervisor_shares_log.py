"""The log of reports that the supervisor keeps."""

from proxy.server.workers.supervisor_shares_log import KEPT_MS, SupervisorSharesLog


def test_records_have_offsets_and_the_supervisors_time_and_old_ones_are_dropped() -> None:
    now = 0
    log = SupervisorSharesLog(lambda: now)
    first = log.append(b"a")
    now = KEPT_MS
    second = log.append(b"b")
    assert [(record.offset, record.timestamp_ms, record.value) for record in (first, second)] == [
        (0, 0, b"a"),
        (1, KEPT_MS, b"b"),
    ]
    assert log.kept() == [first, second]
    now += 1
    third = log.append(b"c")
    assert log.kept() == [second, third]
