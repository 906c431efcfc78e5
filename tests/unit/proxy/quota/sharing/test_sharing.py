"""One process's view of the log."""

from dataclasses import dataclass, field

import pytest

from proxy.quota.sharing.members import LEASE_SECONDS, MAX_STEP_SECONDS
from proxy.quota.sharing.reported_uses import REPORT_BYTES, LocalUse
from proxy.quota.sharing.reports import Report
from proxy.quota.sharing.sharing import (
    COLD_SECONDS,
    DEGRADED_SECONDS,
    HEARTBEAT_SECONDS,
    REPORT_SECONDS,
    STALL_SECONDS,
    Sharing,
)
from proxy.quota.sharing.waterfill import RESERVE
from proxy.store.sharing.share_records import encode_report

KEY = "producer_byte_rate 1 user"


def use(rate: float = 0.0, waiting: int = 0, used: float = 0.0, limit: float = 100.0) -> LocalUse:
    return LocalUse(key=KEY, limit=limit, used=used, rate=rate, average=rate, waiting=waiting)


@dataclass
class World:
    """Processes whose records arrive at once."""

    now: float = 10.0
    log: list[tuple[Report, int]] = field(default_factory=list)
    processes: dict[str, Sharing] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)

    def start(self, name: str) -> Sharing:
        self.processes[name] = Sharing(name)
        self.read[name] = 0
        return self.processes[name]

    def turn(self, seconds: float = REPORT_SECONDS, **uses: LocalUse) -> None:
        """Each process named, or all, reports; then each of them reads everything."""
        self.now += seconds
        for name, process in self.processes.items():
            report = process.report([uses[name]] if name in uses else [], self.now)
            if report is not None:
                self.log.append((report, int(self.now * 1000)))
        for name in self.processes:
            self.catch_up(name)

    def catch_up(self, name: str) -> None:
        while self.read[name] < len(self.log):
            report, at_ms = self.log[self.read[name]]
            self.processes[name].see(report, self.read[name], at_ms)
            self.read[name] += 1


def two() -> tuple[World, Sharing, Sharing]:
    world = World()
    a, b = world.start("a"), world.start("b")
    for _ in range(4):
        world.turn()
    return world, a, b


def test_a_process_has_next_to_nothing_before_all_know_it() -> None:
    world = World()
    a = world.start("a")
    assert a.part(KEY) == pytest.approx(RESERVE)
    world.turn()
    world.turn()
    assert a.part(KEY) == 1.0


def test_cold_limits_are_divided_equally() -> None:
    _, a, b = two()
    assert a.part(KEY) == b.part(KEY) == 0.5
    assert a.instances == 2


def test_a_process_that_is_alone_reports_its_uses_only_when_another_joins() -> None:
    world = World()
    a = world.start("a")
    for used in range(4):
        world.turn(a=use(rate=80.0, waiting=1, used=float(used)))
    told = len(world.log)
    for used in range(4, 20):
        world.turn(a=use(rate=80.0, waiting=1, used=float(used)))
    assert not any(report.buckets for report, _ in world.log[told:])
    assert a.part(KEY) == 1.0
    b = world.start("b")
    for used in range(20, 30):
        world.turn(a=use(rate=80.0, waiting=1, used=float(used)))
    assert any(report.buckets for report, _ in world.log[told:])
    assert a.part(KEY) > 0.9 > b.part(KEY), "the demand of the first is known"


def test_a_process_that_is_left_alone_has_its_limits_without_credit() -> None:
    world, a, b = two()
    for used in range(10):
        world.turn(a=use(rate=40.0, waiting=1, used=2.0 * used), b=use(rate=40.0, waiting=1, used=2.0 * used))
    assert a.part(KEY) + b.part(KEY) > 1.05, "they have credit"
    del world.processes["b"]
    while a.instances > 1:
        world.turn(a=use(rate=40.0, waiting=1))
    world.turn(a=use(rate=40.0, waiting=1))
    assert a.part(KEY) == 1.0


def test_an_idle_process_sends_heartbeats_alone() -> None:
    world, _, _ = two()
    before = len(world.log)
    for _ in range(int(10 * HEARTBEAT_SECONDS / REPORT_SECONDS)):
        world.turn()
    sent = world.log[before:]
    assert len(sent) <= 22
    assert not any(report.buckets for report, _ in sent)


def test_use_below_a_third_of_the_part_is_not_reported() -> None:
    world, _, _ = two()
    before = len(world.log)
    for _ in range(5):
        world.turn(a=use(rate=16.0))
    assert not any(report.buckets for report, _ in world.log[before:])


def test_demand_moves_the_limit_and_goes_back() -> None:
    world, a, b = two()
    used = 0.0
    for _ in range(10):
        used += 100.0 * REPORT_SECONDS
        world.turn(a=use(rate=100.0, waiting=2, used=used), b=use())
    assert a.part(KEY) > 0.97
    assert b.part(KEY) < 0.03
    for _ in range(int((COLD_SECONDS + 2.5) / REPORT_SECONDS)):
        world.turn(a=use(used=used), b=use())
    assert a.part(KEY) == b.part(KEY) == 0.5


def test_what_a_lost_report_said_is_said_again() -> None:
    world, a, b = two()
    for used in range(1, 6):
        world.turn(a=use(waiting=1, used=used * 10.0), b=use(rate=40.0, used=used * 8.0))
    assert a.part(KEY) < 0.6
    assert not b.knows_idle(KEY)
    lost = b.report([use(used=40.0)], world.now)
    assert lost is not None
    assert lost.buckets
    for used in range(6, 16):
        world.turn(a=use(waiting=1, used=used * 20.0), b=use(used=40.0))
    assert b.lost == 1
    assert b.knows_idle(KEY)
    assert a.part(KEY) > 0.8


def test_a_process_that_does_not_use_a_limit_keeps_few_of_its_parts() -> None:
    world, a, b = two()
    for number in range(100):
        world.turn(a=use(rate=60.0 + 20.0 * (number % 3), used=16.0 * number))
    assert a.knows_idle("another")
    assert len(b._hot[KEY].in_force) <= 3


def test_a_limit_that_nobody_uses_has_equal_parts() -> None:
    world = World()
    a = world.start("a")
    assert a.part("another") == pytest.approx(RESERVE)
    world, a, b = two()
    for _ in range(4):
        world.turn(a=use(waiting=1))
    assert a.part(KEY) > 0.9
    assert (a.part("another"), b.part("another")) == (0.5, 0.5)
    a.wake(world.now + STALL_SECONDS + 0.1)
    assert a.part("another") == pytest.approx(RESERVE / 2)


def test_a_part_does_not_grow_before_the_other_process_has_read_why() -> None:
    world, a, b = two()
    del world.processes["b"]
    for _ in range(5):
        world.turn(a=use(rate=50.0, waiting=2))
    assert a.part(KEY) == 0.5
    world.processes["b"] = b
    world.turn(a=use(rate=50.0, waiting=2))
    assert b.part(KEY) < 0.03
    world.turn(a=use(rate=50.0, waiting=2))
    assert a.part(KEY) > 0.97


def test_a_process_that_reads_the_log_anew_stays_known_to_the_others() -> None:
    world, a, b = two()
    while a.reported < 40:
        world.turn(HEARTBEAT_SECONDS)
    world.processes["a"] = anew = Sharing("a", a.reported)
    world.read["a"] = len(world.log)
    for _ in range(6):
        world.turn(a=use(waiting=4))
    assert b.part(KEY) < 0.1, "its demand is known"
    assert anew.part(KEY) > 0.9


def test_a_process_that_reads_the_log_anew_knows_when_it_last_read_it() -> None:
    world, a, _ = two()
    anew = Sharing("a", a.reported, a.seen_at)
    anew.wake(world.now + 3.0)
    assert anew.lag_seconds == pytest.approx(3.0 + REPORT_SECONDS)


def test_a_process_that_follows_a_killed_one_waits_for_its_lease_only() -> None:
    """No other process writes, and the log's time goes on with the records of the one that starts."""
    world = World()
    world.start("a")
    world.turn()
    world.turn()
    world.now += 3600.0
    del world.processes["a"]
    b = world.start("b")
    turns = 0
    while not b.joined:
        world.turn()
        turns += 1
    assert turns * REPORT_SECONDS <= LEASE_SECONDS - MAX_STEP_SECONDS + 3 * REPORT_SECONDS


def test_the_part_of_a_killed_process_is_free_after_its_lease() -> None:
    world, a, _ = two()
    del world.processes["b"]
    while world.now < 100.0 and a.instances == 2:
        world.turn()
    gone_at = world.now
    world.turn()
    assert a.part(KEY) == 1.0
    last = max(at_ms for report, at_ms in world.log if report.instance == "b")
    assert LEASE_SECONDS <= gone_at - last / 1000 <= LEASE_SECONDS + HEARTBEAT_SECONDS + REPORT_SECONDS


def test_a_process_that_leaves_gives_its_part_back_at_once() -> None:
    world, a, b = two()
    leaving = b.report([], world.now, leaving=True)
    assert leaving is not None
    world.log.append((leaving, int(world.now * 1000)))
    del world.processes["b"]
    world.turn()
    world.turn()
    assert a.instances == 1
    assert a.part(KEY) == 1.0


def test_a_process_that_starts_reads_how_all_others_have_left() -> None:
    world, a, b = two()
    world.turn(a=use(60.0, waiting=1), b=use(60.0, waiting=1))
    for process in (a, b):
        leaving = process.report([], world.now, leaving=True)
        assert leaving is not None
        world.log.append((leaving, int(world.now * 1000)))
    world.processes.clear()
    c = world.start("c")
    world.catch_up("c")
    world.turn()
    world.turn()
    assert c.instances == 1
    assert c.part(KEY) == 1.0


def test_a_process_that_stalled_uses_next_to_nothing_until_it_has_read_its_own_report() -> None:
    world, a, b = two()
    world.now += STALL_SECONDS + 0.1
    report = a.report([], world.now)
    assert a.stalled
    assert a.part(KEY) == pytest.approx(RESERVE / 2)
    assert report is not None
    world.log.append((report, int(world.now * 1000)))
    world.catch_up("a")
    assert not a.stalled
    assert a.part(KEY) == 0.5
    assert b.part(KEY) == 0.5


def test_a_report_from_before_the_stall_does_not_end_it() -> None:
    world, a, _ = two()
    world.now += HEARTBEAT_SECONDS * 0.995
    before = a.report([], world.now)
    assert before is not None
    world.now += STALL_SECONDS + 0.1
    a.report([], world.now)
    world.log.append((before, int(world.now * 1000)))
    world.catch_up("a")
    assert a.stalled


def test_a_process_that_expired_for_the_others_has_nothing_until_all_know_it_again() -> None:
    world, a, b = two()
    del world.processes["b"]
    for _ in range(20):
        world.turn(a=use(rate=100.0, waiting=1))
    world.processes["b"] = b
    world.catch_up("b")
    assert b.part(KEY) == pytest.approx(RESERVE)
    for _ in range(10):
        world.turn(a=use(rate=100.0, waiting=1), b=use(rate=100.0, waiting=1))
    assert b.part(KEY) == pytest.approx(a.part(KEY))


def test_a_process_without_the_log_keeps_its_part() -> None:
    world, a, _ = two()
    while not a.degraded:
        world.now += REPORT_SECONDS
        a.report([use(rate=100.0, waiting=3)], world.now)
    assert a.part(KEY) == 0.5
    assert world.now < 100.0
    world.turn()
    world.turn()
    assert not a.degraded


def test_a_process_that_stalls_without_the_log_has_its_part_again_when_it_knows_that_the_log_is_away() -> (
    None
):
    for returns in (False, True):
        world, a, b = two()
        while not a.degraded:
            world.now += REPORT_SECONDS
            a.report([], world.now)
        world.now += 3600.0
        a.wake(world.now)
        assert a.part(KEY) == pytest.approx(RESERVE / 2)
        if returns:
            # The others may have divided its part.
            report = b.report([], world.now)
            assert report is not None
            world.log.append((report, int(world.now * 1000)))
            world.catch_up("a")
        until = world.now + DEGRADED_SECONDS + 2 * REPORT_SECONDS
        while world.now < until:
            assert a.part(KEY) == pytest.approx(RESERVE / 2)
            world.now += REPORT_SECONDS
            a.wake(world.now)
            if not a.stalled:
                break
        assert a.stalled == returns
        assert a.part(KEY) == (pytest.approx(RESERVE / 2) if returns else 0.5)


def test_a_process_that_stalls_with_the_log_waits_for_its_own_report() -> None:
    world, a, _ = two()
    world.now += STALL_SECONDS + 0.1
    for _ in range(100):
        a.report([], world.now)
        assert a.part(KEY) == pytest.approx(RESERVE / 2)
        world.now += REPORT_SECONDS


@pytest.mark.parametrize("rate", [5.0, 15.0])
def test_without_the_log_there_is_no_credit(rate: float) -> None:
    """Neither what was not used nor what was used too much changes the sum."""
    world, a, b = two()
    for turn in range(20):
        world.turn(a=use(50.0, 1, used=rate * turn), b=use(50.0, 1, used=rate * turn))
    assert abs(a.part(KEY) + b.part(KEY) - 1.0) > 0.05
    until = world.now + DEGRADED_SECONDS + 2 * REPORT_SECONDS
    while world.now < until:
        world.now += REPORT_SECONDS
        a.report([], world.now)
        b.report([], world.now)
    assert a.part(KEY) + b.part(KEY) == pytest.approx(1.0)


def test_a_new_limit_is_reported() -> None:
    world, _, _ = two()
    world.turn(a=use(rate=100.0, waiting=1))
    before = len(world.log)
    world.turn(a=use(rate=100.0, waiting=1, limit=500.0))
    assert [entry.limit for report, _ in world.log[before:] for entry in report.buckets] == [500.0]


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
    world, a, b = two()
    names = [f"{number}".ljust(2000, "x") for number in range(1000)]
    parts = []
    for turn in range(150):
        world.now += REPORT_SECONDS
        used = 100.0 * turn * REPORT_SECONDS
        uses = [
            LocalUse(key=name, limit=100.0, used=used, rate=50.0, average=50.0, waiting=1) for name in names
        ]
        uses.insert(500, use(rate=100.0, waiting=1, used=used))
        for process, its in ((a, uses), (b, [])):
            report = process.report(its, world.now)
            if report is not None:
                world.log.append((report, int(world.now * 1000)))
        for name in world.processes:
            world.catch_up(name)
        parts.append(a.part(KEY))
    told = parts.index(max(parts))
    assert told < 40, "all are reported in 7 s"
    assert min(parts[told:]) > 0.95
    for _ in range(int((COLD_SECONDS + 8.0) / REPORT_SECONDS)):
        world.turn(a=use(used=used), b=use())
    assert a.part(KEY) == 0.5


def test_a_report_says_up_to_where_its_parts_are_in_use() -> None:
    world, a, b = two()
    world.turn(b=use(rate=100.0, waiting=1))
    began = a.read_to
    world.now += REPORT_SECONDS
    news = b.report([use(rate=100.0, waiting=5)], world.now)
    assert news is not None
    world.log.append((news, int(world.now * 1000)))
    world.catch_up("a")
    report = a.report([use(rate=100.0, waiting=1)], world.now, applied=began)
    assert report is not None
    assert report.read_to == began < a.read_to
    follows = a.report([], world.now)
    assert follows is not None, "the others wait to hear that this process has read the rest"
    assert follows.read_to == a.read_to
    assert a.report([], world.now) is None


def test_beside_a_process_of_a_newer_format_a_part_is_at_most_equal() -> None:
    world, a, _ = two()
    for _ in range(10):
        world.turn(a=use(rate=100.0, waiting=1))
    assert a.part(KEY) > 0.97
    head = Report(instance="b", number=1000, read_to=len(world.log), buckets=[], newer=True)
    a.see(head, len(world.log), int(world.now * 1000))
    assert a.part(KEY) == 0.5
    assert a.newer() == ["b"]
    leaving = Report(instance="b", number=1001, read_to=0, buckets=[], newer=True, leaving=True)
    a.see(leaving, len(world.log) + 1, int(world.now * 1000))
    assert (a.newer(), a.names()) == ([], ["a"])
    assert a.part(KEY) > 0.97


def test_the_use_before_a_limit_became_hot_is_not_counted_and_that_since_then_is() -> None:
    """The first report has the sum as of the look before, so the second one shows all uses since then."""
    world, a, b = two()
    first = LocalUse(key=KEY, limit=100.0, used=900.0, used_before=400.0, rate=50.0, average=50.0, waiting=1)
    world.turn(a=first)
    assert [report.buckets[0].used for report, _ in world.log if report.buckets] == [400.0]
    assert b.over_seconds(KEY, 100.0) == 0.0
    world.turn(a=use(rate=50.0, waiting=1, used=1600.0))
    for each in (a, b):
        # Less by the time since it has called report() after it read a record.
        assert 1.8 - 1e-9 <= each.over_seconds(KEY, 100.0) <= 2.0


def test_a_limit_that_became_cold_is_still_over() -> None:
    world, a, b = two()
    for used in (0.0, 0.0, 1500.0):
        world.turn(a=use(rate=50.0, waiting=1, used=used))
    while a.hot_keys():
        world.turn()
    left = b.over_seconds(KEY, 100.0)
    assert 3.0 < left <= 5.0
    b.note_use(KEY, 100.0)
    assert b.over_seconds(KEY, 100.0) == pytest.approx(left + 1.0, abs=0.01)
    assert b.over_seconds("another", 100.0) == 0.0
    b.note_use("another", 100.0)
    assert b.over_seconds("another", 100.0) == 0.0


def test_without_the_log_a_limit_that_is_over_is_so_for_no_longer() -> None:
    world, a, _ = two()
    for used in (0.0, 0.0, 1500.0):
        world.turn(a=use(rate=50.0, waiting=1, used=used))
    left = a.over_seconds(KEY, 100.0)
    assert left > 4.0
    for _ in range(int(left / REPORT_SECONDS) + 3):
        world.now += REPORT_SECONDS
        a.report([], world.now)
    assert a.over_seconds(KEY, 100.0) == 0.0


def test_a_process_that_joins_or_stops_is_noted() -> None:
    world, a, b = two()
    assert a.joined_or_left
    a.joined_or_left = b.joined_or_left = False
    world.turn()
    assert not a.joined_or_left
    left = b.report([], world.now, leaving=True)
    assert left is not None
    a.see(left, len(world.log), int(world.now * 1000))
    assert a.joined_or_left


def test_what_all_processes_owe_is_known_until_it_is_paid_at_the_limit() -> None:
    world, a, b = two()

    def owing(used: float, debt: float) -> LocalUse:
        return LocalUse(
            key=KEY, limit=100.0, used=used, rate=50.0, average=50.0, waiting=1, used_before=used, debt=debt
        )

    world.turn(a=owing(0.0, 0.0), b=owing(0.0, 300.0))
    world.turn(a=owing(0.0, 400.0), b=owing(10.0, 290.0))
    for each in (a, b):
        # Less by the time since it has called report() after it read a record.
        assert each.owed_seconds(KEY, 1.0) == pytest.approx(7.0 - REPORT_SECONDS - 1.0, abs=0.201)
        assert each.owed_seconds(KEY, 9.0) == 0.0
        assert each.owed_seconds("another", 0.0) == 0.0
    world.turn(b=owing(10.0, 9000.0))
    assert a.owed_seconds(KEY, 1.0) == pytest.approx(11.0, abs=0.201)


@pytest.mark.parametrize("others_wait", [True, False])
def test_a_process_that_stops_using_a_limit_that_others_wait_for_is_noted(others_wait: bool) -> None:
    world, a, b = two()
    of_b = use(rate=10.0, waiting=1 if others_wait else 0)
    world.turn(a=use(rate=50.0, waiting=1), b=of_b)
    world.turn(a=use(rate=30.0, waiting=0, used=10.0), b=of_b)
    assert (a.freed, b.freed) == (False, False)
    world.turn(a=use(used=10.0), b=of_b)
    assert a.freed is b.freed is others_wait
    a.freed = b.freed = False
    world.turn(a=use(used=10.0), b=of_b)
    assert (a.freed, b.freed) == (False, False)
