"""A process that stalls, and one that cannot reach the log."""

import pytest

from proxy.quota.sharing.sharing import (
    DEGRADED_SECONDS,
    HEARTBEAT_SECONDS,
    REPORT_SECONDS,
    STALL_SECONDS,
)
from proxy.quota.sharing.waterfill import RESERVE
from tests.support.sharing.reporting import KEY, two, use


def test_a_process_that_stalled_uses_next_to_nothing_until_it_has_read_its_own_report() -> None:
    group, a, b = two()
    group.now += STALL_SECONDS + 0.1
    report = a.report([], group.now)
    assert a.stalled
    assert a.part(KEY) == pytest.approx(RESERVE / 2)
    assert report is not None
    group.log.append((report, int(group.now * 1000)))
    group.catch_up("a")
    assert not a.stalled
    assert a.part(KEY) == 0.5
    assert b.part(KEY) == 0.5


def test_a_report_from_before_the_stall_does_not_end_it() -> None:
    group, a, _ = two()
    group.now += HEARTBEAT_SECONDS * 0.995
    before = a.report([], group.now)
    assert before is not None
    group.now += STALL_SECONDS + 0.1
    a.report([], group.now)
    group.log.append((before, int(group.now * 1000)))
    group.catch_up("a")
    assert a.stalled


def test_a_process_that_expired_for_the_others_has_nothing_until_all_know_it_again() -> None:
    group, a, b = two()
    del group.processes["b"]
    for _ in range(20):
        group.turn(a=use(rate=100.0, waiting=1))
    group.processes["b"] = b
    group.catch_up("b")
    assert b.part(KEY) == pytest.approx(RESERVE)
    for _ in range(10):
        group.turn(a=use(rate=100.0, waiting=1), b=use(rate=100.0, waiting=1))
    assert b.part(KEY) == pytest.approx(a.part(KEY))


def test_a_process_without_the_log_keeps_its_part() -> None:
    group, a, _ = two()
    while not a.degraded:
        group.now += REPORT_SECONDS
        a.report([use(rate=100.0, waiting=3)], group.now)
    assert a.part(KEY) == 0.5
    assert group.now < 100.0
    group.turn()
    group.turn()
    assert not a.degraded


def test_a_process_that_stalls_without_the_log_has_its_part_again_when_it_knows_that_the_log_is_away() -> (
    None
):
    for returns in (False, True):
        group, a, b = two()
        while not a.degraded:
            group.now += REPORT_SECONDS
            a.report([], group.now)
        group.now += 3600.0
        a.wake(group.now)
        assert a.part(KEY) == pytest.approx(RESERVE / 2)
        if returns:
            # The others may have divided its part.
            report = b.report([], group.now)
            assert report is not None
            group.log.append((report, int(group.now * 1000)))
            group.catch_up("a")
        until = group.now + DEGRADED_SECONDS + 2 * REPORT_SECONDS
        while group.now < until:
            assert a.part(KEY) == pytest.approx(RESERVE / 2)
            group.now += REPORT_SECONDS
            a.wake(group.now)
            if not a.stalled:
                break
        assert a.stalled == returns
        assert a.part(KEY) == (pytest.approx(RESERVE / 2) if returns else 0.5)


def test_a_process_that_stalls_with_the_log_waits_for_its_own_report() -> None:
    group, a, _ = two()
    group.now += STALL_SECONDS + 0.1
    for _ in range(100):
        a.report([], group.now)
        assert a.part(KEY) == pytest.approx(RESERVE / 2)
        group.now += REPORT_SECONDS


@pytest.mark.parametrize("rate", [5.0, 15.0])
def test_without_the_log_there_is_no_credit(rate: float) -> None:
    """Neither what was not used nor what was used too much changes the sum."""
    group, a, b = two()
    for turn in range(20):
        group.turn(a=use(50.0, 1, used=rate * turn), b=use(50.0, 1, used=rate * turn))
    assert abs(a.part(KEY) + b.part(KEY) - 1.0) > 0.05
    until = group.now + DEGRADED_SECONDS + 2 * REPORT_SECONDS
    while group.now < until:
        group.now += REPORT_SECONDS
        a.report([], group.now)
        b.report([], group.now)
    assert a.part(KEY) + b.part(KEY) == pytest.approx(1.0)


def test_without_the_log_a_limit_that_is_over_is_so_for_no_longer() -> None:
    group, a, _ = two()
    for used in (0.0, 0.0, 1500.0):
        group.turn(a=use(rate=50.0, waiting=1, used=used))
    left = a.over_seconds(KEY, 100.0)
    assert left > 4.0
    for _ in range(int(left / REPORT_SECONDS) + 3):
        group.now += REPORT_SECONDS
        a.report([], group.now)
    assert a.over_seconds(KEY, 100.0) == 0.0
