"""One process's view of the log."""

import pytest

from proxy.quota.sharing.members import LEASE_SECONDS, MAX_STEP_SECONDS
from proxy.quota.sharing.reported_uses import REPORT_BYTES, LocalUse
from proxy.quota.sharing.reports import Report
from proxy.quota.sharing.sharing import (
    COLD_SECONDS,
    HEARTBEAT_SECONDS,
    REPORT_SECONDS,
    STALL_SECONDS,
    Sharing,
)
from proxy.quota.sharing.waterfill import RESERVE
from proxy.store.sharing.share_records import encode_report
from tests.support.sharing.reporting import KEY, ReportingGroup, two, use


def test_a_process_has_next_to_nothing_before_all_know_it() -> None:
    group = ReportingGroup()
    a = group.start("a")
    assert a.part(KEY) == pytest.approx(RESERVE)
    group.turn()
    group.turn()
    assert a.part(KEY) == 1.0


def test_cold_limits_are_divided_equally() -> None:
    _, a, b = two()
    assert a.part(KEY) == b.part(KEY) == 0.5
    assert a.instances == 2


def test_a_process_that_is_alone_reports_its_uses_only_when_another_joins() -> None:
    group = ReportingGroup()
    a = group.start("a")
    for used in range(4):
        group.turn(a=use(rate=80.0, waiting=1, used=float(used)))
    told = len(group.log)
    for used in range(4, 20):
        group.turn(a=use(rate=80.0, waiting=1, used=float(used)))
    assert not any(report.buckets for report, _ in group.log[told:])
    assert a.part(KEY) == 1.0
    b = group.start("b")
    for used in range(20, 30):
        group.turn(a=use(rate=80.0, waiting=1, used=float(used)))
    assert any(report.buckets for report, _ in group.log[told:])
    assert a.part(KEY) > 0.9 > b.part(KEY), "the demand of the first is known"


def test_a_process_that_is_left_alone_has_its_limits_without_credit() -> None:
    group, a, b = two()
    for used in range(10):
        group.turn(a=use(rate=40.0, waiting=1, used=2.0 * used), b=use(rate=40.0, waiting=1, used=2.0 * used))
    assert a.part(KEY) + b.part(KEY) > 1.05, "they have credit"
    del group.processes["b"]
    while a.instances > 1:
        group.turn(a=use(rate=40.0, waiting=1))
    group.turn(a=use(rate=40.0, waiting=1))
    assert a.part(KEY) == 1.0


def test_an_idle_process_sends_heartbeats_alone() -> None:
    group, _, _ = two()
    before = len(group.log)
    for _ in range(int(10 * HEARTBEAT_SECONDS / REPORT_SECONDS)):
        group.turn()
    sent = group.log[before:]
    assert len(sent) <= 22
    assert not any(report.buckets for report, _ in sent)


def test_use_below_a_third_of_the_part_is_not_reported() -> None:
    group, _, _ = two()
    before = len(group.log)
    for _ in range(5):
        group.turn(a=use(rate=16.0))
    assert not any(report.buckets for report, _ in group.log[before:])


def test_demand_moves_the_limit_and_goes_back() -> None:
    group, a, b = two()
    used = 0.0
    for _ in range(10):
        used += 100.0 * REPORT_SECONDS
        group.turn(a=use(rate=100.0, waiting=2, used=used), b=use())
    assert a.part(KEY) > 0.97
    assert b.part(KEY) < 0.03
    for _ in range(int((COLD_SECONDS + 2.5) / REPORT_SECONDS)):
        group.turn(a=use(used=used), b=use())
    assert a.part(KEY) == b.part(KEY) == 0.5


def test_what_a_lost_report_said_is_said_again() -> None:
    group, a, b = two()
    for used in range(1, 6):
        group.turn(a=use(waiting=1, used=used * 10.0), b=use(rate=40.0, used=used * 8.0))
    assert a.part(KEY) < 0.6
    assert not b.knows_idle(KEY)
    lost = b.report([use(used=40.0)], group.now)
    assert lost is not None
    assert lost.buckets
    for used in range(6, 16):
        group.turn(a=use(waiting=1, used=used * 20.0), b=use(used=40.0))
    assert b.lost == 1
    assert b.knows_idle(KEY)
    assert a.part(KEY) > 0.8


def test_a_process_that_does_not_use_a_limit_keeps_few_of_its_parts() -> None:
    group, a, b = two()
    for number in range(100):
        group.turn(a=use(rate=60.0 + 20.0 * (number % 3), used=16.0 * number))
    assert a.knows_idle("another")
    assert len(b._hot[KEY].in_force) <= 3


def test_a_limit_that_nobody_uses_has_equal_parts() -> None:
    group = ReportingGroup()
    a = group.start("a")
    assert a.part("another") == pytest.approx(RESERVE)
    group, a, b = two()
    for _ in range(4):
        group.turn(a=use(waiting=1))
    assert a.part(KEY) > 0.9
    assert (a.part("another"), b.part("another")) == (0.5, 0.5)
    a.wake(group.now + STALL_SECONDS + 0.1)
    assert a.part("another") == pytest.approx(RESERVE / 2)


def test_a_part_does_not_grow_before_the_other_process_has_read_why() -> None:
    group, a, b = two()
    del group.processes["b"]
    for _ in range(5):
        group.turn(a=use(rate=50.0, waiting=2))
    assert a.part(KEY) == 0.5
    group.processes["b"] = b
    group.turn(a=use(rate=50.0, waiting=2))
    assert b.part(KEY) < 0.03
    group.turn(a=use(rate=50.0, waiting=2))
    assert a.part(KEY) > 0.97


def test_a_process_that_reads_the_log_anew_stays_known_to_the_others() -> None:
    group, a, b = two()
    while a.reported < 40:
        group.turn(HEARTBEAT_SECONDS)
    group.processes["a"] = anew = Sharing("a", a.reported)
    group.read["a"] = len(group.log)
    for _ in range(6):
        group.turn(a=use(waiting=4))
    assert b.part(KEY) < 0.1, "its demand is known"
    assert anew.part(KEY) > 0.9


def test_a_process_that_reads_the_log_anew_knows_when_it_last_read_it() -> None:
    group, a, _ = two()
    anew = Sharing("a", a.reported, a.seen_at)
    anew.wake(group.now + 3.0)
    assert anew.lag_seconds == pytest.approx(3.0 + REPORT_SECONDS)


def test_a_process_that_follows_a_killed_one_waits_for_its_lease_only() -> None:
    """No other process writes, and the log's time goes on with the records of the one that starts."""
    group = ReportingGroup()
    group.start("a")
    group.turn()
    group.turn()
    group.now += 3600.0
    del group.processes["a"]
    b = group.start("b")
    turns = 0
    while not b.joined:
        group.turn()
        turns += 1
    assert turns * REPORT_SECONDS <= LEASE_SECONDS - MAX_STEP_SECONDS + 3 * REPORT_SECONDS


def test_the_part_of_a_killed_process_is_free_after_its_lease() -> None:
    group, a, _ = two()
    del group.processes["b"]
    while group.now < 100.0 and a.instances == 2:
        group.turn()
    gone_at = group.now
    group.turn()
    assert a.part(KEY) == 1.0
    last = max(at_ms for report, at_ms in group.log if report.instance == "b")
    assert LEASE_SECONDS <= gone_at - last / 1000 <= LEASE_SECONDS + HEARTBEAT_SECONDS + REPORT_SECONDS


def test_a_process_that_leaves_gives_its_part_back_at_once() -> None:
    group, a, b = two()
    leaving = b.report([], group.now, leaving=True)
    assert leaving is not None
    group.log.append((leaving, int(group.now * 1000)))
    del group.processes["b"]
    group.turn()
    group.turn()
    assert a.instances == 1
    assert a.part(KEY) == 1.0


def test_a_process_that_starts_reads_how_all_others_have_left() -> None:
    group, a, b = two()
    group.turn(a=use(60.0, waiting=1), b=use(60.0, waiting=1))
    for process in (a, b):
        leaving = process.report([], group.now, leaving=True)
        assert leaving is not None
        group.log.append((leaving, int(group.now * 1000)))
    group.processes.clear()
    c = group.start("c")
    group.catch_up("c")
    group.turn()
    group.turn()
    assert c.instances == 1
    assert c.part(KEY) == 1.0


def test_a_new_limit_is_reported() -> None:
    group, _, _ = two()
    group.turn(a=use(rate=100.0, waiting=1))
    before = len(group.log)
    group.turn(a=use(rate=100.0, waiting=1, limit=500.0))
    assert [entry.limit for report, _ in group.log[before:] for entry in report.buckets] == [500.0]


def test_a_report_fits_in_a_record_and_the_next_ones_have_the_rest() -> None:
    sharing = Sharing("a")
    names = [f"18:producer_byte_rate{number:>40}/1" for number in range(1_500)]
    reported: set[str] = set()
    for number in range(1, 5):
        # All buckets have news each time.
        uses = [
            LocalUse(key=name, limit=1e6, used=1e9 + number / 3, rate=1e6 / 3, average=0.0, waiting=1)
            for name in names
        ]
        report = sharing.report(uses, number * REPORT_SECONDS)
        assert report is not None
        assert 20_000 < len(encode_report(report)) <= REPORT_BYTES
        assert sharing.more is (len(report.buckets) < len(names))
        reported.update(entry.key for entry in report.buckets)
    assert len(reported) == len(names)


def test_thousands_of_hot_buckets_leave_a_neighbour_its_limit() -> None:
    """A process needs longer than COLD_SECONDS to report all of them."""
    group, a, b = two()
    names = [f"{number}".ljust(2000, "x") for number in range(1000)]
    parts = []
    for turn in range(150):
        group.now += REPORT_SECONDS
        used = 100.0 * turn * REPORT_SECONDS
        uses = [
            LocalUse(key=name, limit=100.0, used=used, rate=50.0, average=50.0, waiting=1) for name in names
        ]
        uses.insert(500, use(rate=100.0, waiting=1, used=used))
        for process, its in ((a, uses), (b, [])):
            report = process.report(its, group.now)
            if report is not None:
                group.log.append((report, int(group.now * 1000)))
        for name in group.processes:
            group.catch_up(name)
        parts.append(a.part(KEY))
    told = parts.index(max(parts))
    assert told < 40, "all are reported in 7 s"
    assert min(parts[told:]) > 0.95
    for _ in range(int((COLD_SECONDS + 8.0) / REPORT_SECONDS)):
        group.turn(a=use(used=used), b=use())
    assert a.part(KEY) == 0.5


def test_a_report_says_up_to_where_its_parts_are_in_use() -> None:
    group, a, b = two()
    group.turn(b=use(rate=100.0, waiting=1))
    began = a.read_to
    group.now += REPORT_SECONDS
    news = b.report([use(rate=100.0, waiting=5)], group.now)
    assert news is not None
    group.log.append((news, int(group.now * 1000)))
    group.catch_up("a")
    report = a.report([use(rate=100.0, waiting=1)], group.now, applied=began)
    assert report is not None
    assert report.read_to == began < a.read_to
    follows = a.report([], group.now)
    assert follows is not None, "the others wait to hear that this process has read the rest"
    assert follows.read_to == a.read_to
    assert a.report([], group.now) is None


def test_beside_a_process_of_a_newer_format_a_part_is_at_most_equal() -> None:
    group, a, _ = two()
    for _ in range(10):
        group.turn(a=use(rate=100.0, waiting=1))
    assert a.part(KEY) > 0.97
    head = Report(instance="b", number=1000, read_to=len(group.log), buckets=[], newer=True)
    a.see(head, len(group.log), int(group.now * 1000))
    assert a.part(KEY) == 0.5
    assert a.newer() == ["b"]
    leaving = Report(instance="b", number=1001, read_to=0, buckets=[], newer=True, leaving=True)
    a.see(leaving, len(group.log) + 1, int(group.now * 1000))
    assert (a.newer(), a.names()) == ([], ["a"])
    assert a.part(KEY) > 0.97


def test_the_use_before_a_limit_became_hot_is_not_counted_and_that_since_then_is() -> None:
    """The first report has the sum as of the look before, so the second one shows all uses since then."""
    group, a, b = two()
    first = LocalUse(key=KEY, limit=100.0, used=900.0, used_before=400.0, rate=50.0, average=50.0, waiting=1)
    group.turn(a=first)
    assert [report.buckets[0].used for report, _ in group.log if report.buckets] == [400.0]
    assert b.over_seconds(KEY, 100.0) == 0.0
    group.turn(a=use(rate=50.0, waiting=1, used=1600.0))
    for each in (a, b):
        # Less by the time since it has called report() after it read a record.
        assert 1.8 - 1e-9 <= each.over_seconds(KEY, 100.0) <= 2.0


def test_a_limit_that_became_cold_is_still_over() -> None:
    group, a, b = two()
    for used in (0.0, 0.0, 1500.0):
        group.turn(a=use(rate=50.0, waiting=1, used=used))
    while a.hot_keys():
        group.turn()
    left = b.over_seconds(KEY, 100.0)
    assert 3.0 < left <= 5.0
    b.note_use(KEY, 100.0)
    assert b.over_seconds(KEY, 100.0) == pytest.approx(left + 1.0, abs=0.01)
    assert b.over_seconds("another", 100.0) == 0.0
    b.note_use("another", 100.0)
    assert b.over_seconds("another", 100.0) == 0.0


def test_a_process_that_joins_or_stops_is_noted() -> None:
    group, a, b = two()
    assert a.joined_or_left
    a.joined_or_left = b.joined_or_left = False
    group.turn()
    assert not a.joined_or_left
    left = b.report([], group.now, leaving=True)
    assert left is not None
    a.see(left, len(group.log), int(group.now * 1000))
    assert a.joined_or_left


def test_what_all_processes_owe_is_known_until_it_is_paid_at_the_limit() -> None:
    group, a, b = two()

    def owing(used: float, debt: float) -> LocalUse:
        return LocalUse(
            key=KEY, limit=100.0, used=used, rate=50.0, average=50.0, waiting=1, used_before=used, debt=debt
        )

    group.turn(a=owing(0.0, 0.0), b=owing(0.0, 300.0))
    group.turn(a=owing(0.0, 400.0), b=owing(10.0, 290.0))
    for each in (a, b):
        # Less by the time since it has called report() after it read a record.
        assert each.owed_seconds(KEY, 1.0) == pytest.approx(7.0 - REPORT_SECONDS - 1.0, abs=0.201)
        assert each.owed_seconds(KEY, 9.0) == 0.0
        assert each.owed_seconds("another", 0.0) == 0.0
    group.turn(b=owing(10.0, 9000.0))
    assert a.owed_seconds(KEY, 1.0) == pytest.approx(11.0, abs=0.201)


@pytest.mark.parametrize("others_wait", [True, False])
def test_a_process_that_stops_using_a_limit_that_others_wait_for_is_noted(others_wait: bool) -> None:
    group, a, b = two()
    of_b = use(rate=10.0, waiting=1 if others_wait else 0)
    group.turn(a=use(rate=50.0, waiting=1), b=of_b)
    group.turn(a=use(rate=30.0, waiting=0, used=10.0), b=of_b)
    assert (a.freed, b.freed) == (False, False)
    group.turn(a=use(used=10.0), b=of_b)
    assert a.freed is b.freed is others_wait
    a.freed = b.freed = False
    group.turn(a=use(used=10.0), b=of_b)
    assert (a.freed, b.freed) == (False, False)
